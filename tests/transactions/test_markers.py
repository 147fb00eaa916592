"""The marker writer over brokers that can fail: every marker is written in the end, where it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.transactions.markers import MarkerWriter, PendingEnd
from odradek.transactions.transaction import Transaction, TransactionState

A, B, C = (TopicPartition("orders", index) for index in range(3))
Result = WriteTxnMarkersResponse.Markers


class Brokers:
    """Leaders by partition; `codes` are answered once each, then NONE."""

    def __init__(self, leaders: dict[TopicPartition, int]) -> None:
        self.leaders = leaders
        self.deleted: set[TopicPartition] = set()
        self.codes: dict[TopicPartition, list[ErrorCode]] = {}
        self.unreachable = 0
        # Raised once each, by whichever call comes next: errors in our own code.
        self.faults: list[Exception] = []
        # Requests with these partitions, or to these brokers, are answered when the event is set.
        self.slow: set[TopicPartition] = set()
        self.hung: set[int] = set()
        self.released = asyncio.Event()
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []

    def leader_of(self, partition: TopicPartition) -> int | None:
        return self.leaders.get(partition)

    async def is_deleted(self, partition: TopicPartition) -> bool:
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop()
        return partition in self.deleted

    async def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, *, is_retry: bool
    ) -> WriteTxnMarkersResponse:
        await asyncio.sleep(0)
        if self.unreachable:
            self.unreachable -= 1
            raise KafkaError(error_code=ErrorCode.NETWORK_EXCEPTION)
        if self.faults:
            raise self.faults.pop()
        self.sent.append((broker_id, request))
        asked = {TopicPartition(topic, index) for *_, topic, index in rows_of(broker_id, request)}
        if broker_id in self.hung or asked & self.slow:
            await self.released.wait()
        return WriteTxnMarkersResponse(markers=[self._result(marker) for marker in request.markers])

    def _result(self, marker: Any) -> Result:
        return Result(
            producer_id=marker.producer_id,
            topics=[
                Result.Topics(
                    name=topic.name,
                    partitions=[
                        Result.Topics.Partitions(
                            partition_index=index,
                            error_code=self._code(TopicPartition(topic.name, index)),
                        )
                        for index in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ],
        )

    def _code(self, partition: TopicPartition) -> ErrorCode:
        waiting = self.codes.get(partition)
        return waiting.pop(0) if waiting else ErrorCode.NONE

    def written(self) -> set[tuple[int, int, str, int]]:
        """Broker, producer id, topic, partition."""
        return {row for broker_id, request in self.sent for row in rows_of(broker_id, request)}


def rows_of(broker_id: int, request: WriteTxnMarkersRequest) -> set[tuple[int, int, str, int]]:
    return {
        (broker_id, marker.producer_id, topic.name, index)
        for marker in request.markers
        for topic in marker.topics
        for index in topic.partition_indexes
    }


class Scene:
    def __init__(self, leaders: dict[TopicPartition, int]) -> None:
        self.brokers = Brokers(leaders)
        self.tasks: set[asyncio.Task[None]] = set()
        self.completed: list[int] = []
        self.writer = MarkerWriter(self.brokers, self._start)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def end(
        self,
        *partitions: TopicPartition,
        producer_id: int = 7,
        state_partition: int = 0,
        coordinator_epoch: int = 5,
    ) -> None:
        transaction = Transaction(
            f"t{producer_id}",
            producer_id,
            1000,
            producer_epoch=3,
            state=TransactionState.PREPARE_COMMIT,
            partitions=frozenset(partitions),
        )
        done: Callable[[], None] = lambda: self.completed.append(producer_id)  # noqa: E731
        self.writer.write(PendingEnd(transaction, state_partition, coordinator_epoch, done))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.001)


def run(scenario: Callable[[Scene], Coroutine[Any, Any, None]], leaders: dict[TopicPartition, int]) -> None:
    async def main() -> None:
        await scenario(Scene(leaders))

    asyncio.run(main())


def test_each_leader_gets_the_markers_of_its_partitions() -> None:
    async def scenario(scene: Scene) -> None:
        scene.end(A, B, C)
        await scene.until(lambda: scene.completed == [7])
        assert scene.brokers.written() == {(1, 7, "orders", 0), (1, 7, "orders", 1), (2, 7, "orders", 2)}
        marker = scene.brokers.sent[0][1].markers[0]
        assert (marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (3, 5, True)
        assert len(scene.writer) == 0

    run(scenario, {A: 1, B: 1, C: 2})


def test_transactions_that_wait_together_share_a_request() -> None:
    async def scenario(scene: Scene) -> None:
        for producer_id in range(10):
            scene.end(A, producer_id=producer_id)
        await scene.until(lambda: len(scene.completed) == 10)
        assert len(scene.brokers.sent) < 5

    run(scenario, {A: 1})


def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    async def scenario(scene: Scene) -> None:
        scene.end()
        assert scene.completed == [7]

    run(scenario, {})


def test_what_fails_is_tried_again_and_nothing_else() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.unreachable = 2
        scene.brokers.codes[A] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS]
        scene.end(A, B)
        await scene.until(lambda: scene.completed == [7])
        asked = [
            index
            for _, request in scene.brokers.sent
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        ]
        assert sorted(asked) == [0, 0, 0, 1]

    run(scenario, {A: 1, B: 1})


def test_a_marker_follows_the_leader_and_waits_for_one() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.codes[A] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        scene.end(A)
        await scene.until(lambda: bool(scene.brokers.sent))
        scene.brokers.leaders[A] = -1
        await asyncio.sleep(0.05)
        assert scene.completed == []
        scene.brokers.leaders[A] = 2
        await scene.until(lambda: scene.completed == [7])
        assert scene.brokers.sent[-1][0] == 2

    run(scenario, {A: 1})


def test_a_deleted_partition_needs_no_marker_but_an_unknown_one_does() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.deleted.add(A)
        scene.end(A, B)
        await asyncio.sleep(0.02)
        assert scene.completed == []
        scene.brokers.leaders[B] = 1
        await scene.until(lambda: scene.completed == [7])
        assert scene.brokers.written() == {(1, 7, "orders", 1)}

    run(scenario, {})


def test_what_failed_is_tried_again_without_holding_up_any_other_marker() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.codes[A] = [ErrorCode.REQUEST_TIMED_OUT]
        scene.end(A, producer_id=1)
        await scene.until(lambda: scene.brokers.codes[A] == [])
        scene.brokers.slow = {A}
        await scene.until(lambda: len(scene.brokers.sent) == 2)
        scene.end(A, producer_id=2)
        scene.end(B, producer_id=3)
        await scene.until(lambda: scene.completed == [3])
        scene.brokers.released.set()
        await scene.until(lambda: scene.completed == [3, 1, 2])
        scene.end(A, B, producer_id=4)
        await scene.until(lambda: scene.completed == [3, 1, 2, 4])
        assert len(scene.brokers.sent[-1][1].markers[0].topics[0].partition_indexes) == 2

    run(scenario, {A: 1, B: 1})


def test_markers_that_wait_for_a_broker_which_hangs_go_to_the_next_leaders() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.hung = {1}
        scene.end(A, producer_id=1)
        await scene.until(lambda: len(scene.brokers.sent) == 1)
        scene.end(B, producer_id=2)
        scene.end(C, producer_id=3)
        scene.brokers.leaders[B] = 2
        scene.brokers.leaders[C] = -1
        scene.writer.leaders_changed(["payments"])
        await asyncio.sleep(0.01)
        assert scene.completed == []
        scene.writer.leaders_changed(["orders"])
        await scene.until(lambda: scene.completed == [2])
        scene.brokers.leaders[C] = 3
        await scene.until(lambda: scene.completed == [2, 3])
        scene.brokers.released.set()
        await scene.until(lambda: scene.completed == [2, 3, 1])
        places = {(broker_id, index) for broker_id, _, _, index in scene.brokers.written()}
        assert places == {(1, 0), (2, 1), (3, 2)}

    run(scenario, {A: 1, B: 1, C: 1})


def test_an_error_that_nobody_expects_loses_no_marker() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.faults = [ValueError("an answer that cannot be read")]
        scene.end(A, producer_id=1)
        scene.end(B, producer_id=2)
        await scene.until(lambda: sorted(scene.completed) == [1, 2])
        scene.brokers.faults = [RuntimeError("a store that cannot be asked")]
        scene.brokers.deleted.add(C)
        scene.end(C, producer_id=3)
        await scene.until(lambda: scene.completed[2:] == [3])

    run(scenario, {A: 1, B: 1})


def test_a_partition_in_a_newer_producer_epoch_keeps_no_other_partition_from_its_marker() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.codes[A] = [ErrorCode.INVALID_PRODUCER_EPOCH]
        scene.brokers.codes[B] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        scene.end(A, B, C)
        await scene.until(lambda: scene.completed == [7])
        asked = [
            index
            for _, request in scene.brokers.sent
            for topic in request.markers[0].topics
            for index in topic.partition_indexes
        ]
        assert sorted(asked) == [0, 1, 1, 2]

    run(scenario, {A: 1, B: 1, C: 2})


def test_a_leader_that_knows_a_newer_coordinator_epoch_ends_the_attempts() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.codes[A] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        scene.end(A, B)
        await scene.until(lambda: len(scene.writer) == 0)
        await asyncio.sleep(0.03)
        assert (scene.completed, len(scene.brokers.sent)) == ([], 1)

    run(scenario, {A: 1, B: 1})


def test_an_end_of_an_older_coordinator_epoch_does_not_replace_a_newer_one() -> None:
    async def scenario(scene: Scene) -> None:
        scene.end(A, coordinator_epoch=6)
        scene.end(A, coordinator_epoch=5)
        await scene.until(lambda: scene.completed == [7])
        epochs = [one.coordinator_epoch for _, request in scene.brokers.sent for one in request.markers]
        assert epochs == [6]

    run(scenario, {A: 1})


def test_a_marker_that_is_fenced_by_a_newer_one_of_the_same_end_stops_only_the_older_one() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.codes[A] = [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
        scene.end(A, coordinator_epoch=5)
        await asyncio.sleep(0)  # it is being sent
        scene.end(A, coordinator_epoch=6)
        await scene.until(lambda: scene.completed == [7])

    run(scenario, {A: 1})


def test_markers_of_a_partition_that_is_coordinated_elsewhere_are_dropped() -> None:
    async def scenario(scene: Scene) -> None:
        scene.brokers.unreachable = 1
        scene.end(A, producer_id=1, state_partition=0)
        scene.end(A, producer_id=2, state_partition=1)
        scene.writer.drop(0)
        await scene.until(lambda: scene.completed == [2])
        assert scene.brokers.written() == {(1, 2, "orders", 0)}

    run(scenario, {A: 1})
