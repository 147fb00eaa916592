"""ISR changes on their way to the controller: batched, one request at a time, repeated until settled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest

from log.given_logs import NOW_MS, open_log
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from odradek.replication.counters import ReplicationCounters
from odradek.replication.isr_changes import IsrChanges
from odradek.replication.partition import LeaderAndIsrState, Partition

Row = AlterPartitionResponse.Topics.Partitions
AlterPartitionResult = AlterPartitionResponse | Exception


class Given:
    """Partitions that this broker (0) leads, with broker 1 out of the ISR; answers come from a list."""

    def __init__(self, directory: Path) -> None:
        self.requests: list[AlterPartitionRequest] = []
        self.answers: list[Callable[[AlterPartitionRequest], AlterPartitionResponse]] = []
        self.counters = ReplicationCounters()
        self.in_flight = 0
        self.changes = IsrChanges(
            0,
            self._send,
            lambda: 70,
            lambda broker_id: 70 + broker_id,
            self.counters,
            max_lag_ms=1000,
            retry_backoff_s=0.001,
        )
        self.partitions = [self._partition(directory, index) for index in range(3)]

    def _partition(self, directory: Path, index: int) -> Partition:
        log = open_log(directory / f"orders-{index}")
        partition = Partition(
            TopicPartition("orders", index),
            UUID(int=7).bytes,
            0,
            log,
            lambda _: None,
            isr_port=self.changes,
        )
        partition.become(LeaderAndIsrState(0, 4, (0,), (0, 1), 9), NOW_MS)
        return partition

    async def _send(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        self.in_flight += 1
        assert self.in_flight == 1
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        self.requests.append(request)
        return self.answers.pop(0)(request) if self.answers else granted(request)

    def fetch(self, *indexes: int) -> None:
        """Broker 1 has caught up in these partitions."""
        for index in indexes:
            self.partitions[index].record_follower_fetch(1, 0, 0, NOW_MS, 71)

    async def until_settled(self) -> None:
        for _ in range(1000):
            await asyncio.sleep(0.001)
            if not any(partition.pending for partition in self.partitions):
                return

    def asked(self) -> list[list[int]]:
        return [[row.partition_index for row in one.topics[0].partitions] for one in self.requests]


def granted(request: AlterPartitionRequest) -> AlterPartitionResponse:
    (topic,) = request.topics
    rows = [
        Row(
            partition_index=asked.partition_index,
            leader_id=0,
            leader_epoch=asked.leader_epoch,
            isr=[one.broker_id for one in asked.new_isr_with_epochs],
            partition_epoch=asked.partition_epoch + 1,
        )
        for asked in topic.partitions
    ]
    return AlterPartitionResponse(
        topics=[AlterPartitionResponse.Topics(topic_id=topic.topic_id, partitions=rows)]
    )


def refused(error_code: ErrorCode) -> Callable[[AlterPartitionRequest], AlterPartitionResponse]:
    def answer(request: AlterPartitionRequest) -> AlterPartitionResponse:
        response = granted(request)
        for row in response.topics[0].partitions:
            row.error_code = error_code
        return response

    return answer


def lost(request: AlterPartitionRequest) -> AlterPartitionResponse:
    raise RequestFailed("controller", "gone")


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    given = Given(tmp_path)
    yield given
    for partition in given.partitions:
        partition.log.close(NOW_MS)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 30))  # type: ignore[arg-type]


def test_a_request_has_the_epochs_and_the_registrations(given: Given) -> None:
    async def scenario() -> None:
        given.fetch(0)
        await given.until_settled()

    run(scenario)
    (request,) = given.requests
    (asked,) = request.topics[0].partitions
    assert (request.broker_id, request.broker_epoch) == (0, 70)
    assert (asked.leader_epoch, asked.partition_epoch) == (4, 9)
    members = [(one.broker_id, one.broker_epoch) for one in asked.new_isr_with_epochs]
    assert members == [(0, 70), (1, 71)]
    assert given.partitions[0].isr == (0, 1)
    assert given.partitions[0].state.partition_epoch == 10
    assert given.counters.isr_expands == 1


def test_what_is_proposed_meanwhile_goes_together_with_the_next_request(given: Given) -> None:
    async def scenario() -> None:
        given.fetch(0)
        await asyncio.sleep(0)
        given.fetch(1, 2)
        await given.until_settled()

    run(scenario)
    assert given.asked() == [[0], [1, 2]]


@pytest.mark.parametrize("answer", [lost, refused(ErrorCode.UNKNOWN_SERVER_ERROR)])
def test_a_request_without_an_outcome_is_sent_again(
    given: Given, answer: Callable[[AlterPartitionRequest], AlterPartitionResponse]
) -> None:
    given.answers = [answer, answer]

    async def scenario() -> None:
        given.fetch(0)
        await given.until_settled()

    run(scenario)
    assert given.asked() == [[0], [0], [0]]
    assert given.partitions[0].isr == (0, 1)


def test_a_stale_broker_epoch_is_tried_again(given: Given) -> None:
    given.answers = [lambda _: AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)]

    async def scenario() -> None:
        given.fetch(0)
        await given.until_settled()

    run(scenario)
    assert given.asked() == [[0], [0]]


def test_an_ineligible_replica_is_given_up(given: Given) -> None:
    given.answers = [refused(ErrorCode.INELIGIBLE_REPLICA)]

    async def scenario() -> None:
        given.fetch(0)
        await given.until_settled()

    run(scenario)
    assert given.asked() == [[0]]
    assert given.partitions[0].isr == (0,)
    assert given.counters.failed_isr_updates == 1


def test_a_refused_change_is_not_proposed_at_every_fetch(given: Given) -> None:
    fetches = 200
    given.answers = [refused(ErrorCode.INELIGIBLE_REPLICA) for _ in range(fetches)]
    given.changes._retry_backoff_s = 0.05

    async def scenario() -> None:
        for _ in range(fetches):
            given.fetch(0)
            await asyncio.sleep(0.002)

    asyncio.run(scenario())

    assert 2 <= len(given.requests) < fetches / 5


def test_after_a_newer_decision_the_change_stays_pending_until_it_arrives(given: Given) -> None:
    given.answers = [refused(ErrorCode.INVALID_UPDATE_VERSION)]
    partition = given.partitions[0]

    async def scenario() -> None:
        given.fetch(0)
        await asyncio.sleep(0.05)
        assert partition.pending is not None
        partition.become(LeaderAndIsrState(0, 4, (0,), (0, 1), 11), NOW_MS)
        assert partition.pending is None

    run(scenario)
    assert given.asked() == [[0]]


def test_a_change_of_an_earlier_leader_epoch_is_not_sent_again(given: Given) -> None:
    given.answers = [lost]
    partition = given.partitions[0]

    async def scenario() -> None:
        given.fetch(0)
        await asyncio.sleep(0)
        partition.become(LeaderAndIsrState(1, 5, (0, 1), (0, 1), 10), NOW_MS)
        await asyncio.sleep(0.05)

    run(scenario)
    assert len(given.requests) <= 1
    assert not partition.is_leader
