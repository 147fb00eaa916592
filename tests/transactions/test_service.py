"""The transaction service over a log in memory, while the leader epoch of its partition changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from coordinator.given import Alarms, FixedClock, MemoryLog
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.transactions.completions import Completions
from odradek.transactions.markers import MarkerWriter
from odradek.transactions.operations import EndRequest, Initialization, PartitionsRequest
from odradek.transactions.service import TransactionService
from odradek.transactions.settings import TransactionSettings
from odradek.transactions.state import TransactionCounters, TransactionsState
from odradek.transactions.transaction import ProducerIdAndEpoch, Transaction, TransactionState

ID = "t"
ORDERS = TopicPartition("orders", 0)
Result = WriteTxnMarkersResponse.Markers


class Leaders:
    """One broker leads everything; it remembers the coordinator epochs of the markers that it has written."""

    def __init__(self) -> None:
        self.coordinator_epochs: list[int] = []

    def leader_of(self, partition: TopicPartition) -> int:
        return 1

    async def is_deleted(self, partition: TopicPartition) -> bool:
        return False

    async def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, *, is_retry: bool
    ) -> WriteTxnMarkersResponse:
        await asyncio.sleep(0)
        self.coordinator_epochs += [marker.coordinator_epoch for marker in request.markers]
        row = Result.Topics.Partitions(partition_index=ORDERS.partition)
        topics = [Result.Topics(name=ORDERS.topic, partitions=[row])]
        return WriteTxnMarkersResponse(
            markers=[Result(producer_id=one.producer_id, topics=topics) for one in request.markers]
        )


class Given:
    """A coordinator of one partition, in leader epoch 0."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.leaders = Leaders()
        counters = TransactionCounters()
        completions = Completions()

        def new_state(partition: int) -> TransactionsState:
            def on_prepared(transaction: Transaction) -> None:
                self.service.on_prepared(partition, transaction)

            return TransactionsState(TransactionSettings, on_prepared, completions.notify, counters)

        self.runtime = CoordinatorRuntime(self.log, Alarms(), FixedClock(), new_state, commit_timeout_ms=50)
        markers = MarkerWriter(self.leaders, self._start)
        self.service = TransactionService(
            self.runtime, markers, lambda: 1, self._next_id, counters, completions
        )
        self.runtime.lead(0, 0)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.service.start(work)

    async def _next_id(self) -> int:
        return 7

    async def begin(self) -> ProducerIdAndEpoch:
        producer = (await self.service.initialize(Initialization(ID, 60_000, None))).producer
        await self.service.add_partitions(PartitionsRequest(ID, producer, frozenset([ORDERS]), 0))
        return producer

    async def state(self) -> TransactionState:
        return (await self.service.describe(ID)).state


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.001)


async def until_complete(given: Given) -> None:
    async with asyncio.timeout(20):
        while await given.state() is not TransactionState.COMPLETE_COMMIT:
            await asyncio.sleep(0.001)


def test_an_end_that_is_committed_in_the_next_leader_epoch_is_completed() -> None:
    async def main() -> None:
        given = Given()
        producer = await given.begin()
        given.log.commit()
        ending = asyncio.ensure_future(given.service.end(EndRequest(ID, producer, True, 0)))
        await asyncio.sleep(0.01)
        given.log.committed = 1 << 60
        given.runtime.lead(0, 1)
        await until(lambda: given.leaders.coordinator_epochs)
        given.log.moved.set()

        await ending
        await until_complete(given)
        await asyncio.sleep(0.01)
        assert given.leaders.coordinator_epochs == [1]
        given.service.close()

    asyncio.run(main())


def test_a_completion_that_cannot_be_written_is_written_again() -> None:
    async def main() -> None:
        given = Given()
        await given.service.end(EndRequest(ID, await given.begin(), True, 0))
        given.log.fault = KafkaError("not yet", error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await until(lambda: given.leaders.coordinator_epochs)
        await asyncio.sleep(0.01)
        assert await given.state() is TransactionState.PREPARE_COMMIT
        given.log.fault = None
        await until_complete(given)
        given.service.close()

    asyncio.run(main())
