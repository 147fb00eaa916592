"""The API of the transaction coordinator for the handlers; each request runs on the shard of its id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.partitioning import partition_for
from odradek.coordinator.result import Response, Result
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.transactions import admin, operations
from odradek.transactions.admin import TransactionFilter, TransactionListing
from odradek.transactions.completions import Completions
from odradek.transactions.markers import MarkerWriter, PendingEnd
from odradek.transactions.operations import (
    EndRequest,
    Initialization,
    Initialized,
    PartitionErrors,
    PartitionsRequest,
)
from odradek.transactions.state import TransactionCounters, TransactionsState
from odradek.transactions.transaction import (
    ProducerIdAndEpoch,
    ProducerIdNeeded,
    Transaction,
    TransactionState,
)

logger = logging.getLogger(__name__)

RETRY_S = 0.1

_Decide = Callable[[TransactionsState, int | None, int], Result[Response]]


class TransactionService:
    """Finds the shard, runs the operation there and waits for its commit. Used on the broker's event loop.

    `partition_count` is that of `__transaction_state`; errors of whole requests are raised.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime[TransactionsState],
        markers: MarkerWriter,
        partition_count: Callable[[], int],
        next_producer_id: Callable[[], Awaitable[int]],
        counters: TransactionCounters,
        completions: Completions,
    ) -> None:
        self.runtime = runtime
        self.markers = markers
        self.counters = counters
        self._completions = completions
        self._partition_count = partition_count
        self._next_producer_id = next_producer_id
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Stop coordinating all transactions."""
        self.runtime.close()
        for task in self._tasks:
            task.cancel()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a background task until it is done, or the service is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Requests of producers

    async def initialize(self, request: Initialization) -> Initialized:
        """A producer id and epoch; an open transaction of the id is aborted first, which takes a retry."""
        operations.require_id(request.transactional_id)
        return await self._run(
            request.transactional_id,
            lambda state, new_id, now: operations.initialize(state, request, new_id, now),
        )

    async def add_partitions(self, request: PartitionsRequest) -> None:
        """Add partitions to the producer's transaction."""
        operations.require_id(request.transactional_id)
        await self.runtime.run(
            self.partition_of(request.transactional_id),
            lambda state, now: operations.add_partitions(state, request, now),
        )

    async def verify_partitions(self, request: PartitionsRequest) -> PartitionErrors:
        """Whether partitions are in the producer's open transaction."""
        operations.require_id(request.transactional_id)
        return await self.runtime.read(
            self.partition_of(request.transactional_id),
            lambda state, _: operations.verify_partitions(state, request),
        )

    async def end(self, request: EndRequest) -> ProducerIdAndEpoch:
        """Decide the end of the transaction; its markers are written in the background."""
        operations.require_id(request.transactional_id)
        return await self._run(
            request.transactional_id, lambda state, new_id, now: operations.end(state, request, new_id, now)
        )

    async def wait_for_completion(self, transactional_id: str, timeout_s: float) -> None:
        """Return when no transaction of the id is being ended on this broker, or after the time-out."""
        try:
            state = self.runtime.state(self.partition_of(transactional_id))
        except KafkaError:  # another broker coordinates it, or nobody yet
            return
        known = state.find(transactional_id)
        if known is not None and known.is_prepared:
            await self._completions.wait(transactional_id, timeout_s)

    # Administration

    async def list_transactions(self, wanted: TransactionFilter) -> list[TransactionListing]:
        """The transactions that this broker coordinates."""
        listed: list[TransactionListing] = []
        for partition in self.runtime.partitions():
            try:
                listed += await self.runtime.read(
                    partition, lambda state, now: admin.list_transactions(state, wanted, now)
                )
            except KafkaError as error:
                # Another broker is the coordinator by now, and lists them.
                if error.error_code is not ErrorCode.NOT_COORDINATOR:
                    raise
        return listed

    async def describe(self, transactional_id: str) -> Transaction:
        """One transaction."""
        operations.require_id(transactional_id)
        return await self.runtime.read(
            self.partition_of(transactional_id), lambda state, _: admin.describe(state, transactional_id)
        )

    def open_transactions(self) -> list[Transaction]:
        """The transactions that are not decided yet, of the partitions that are loaded."""
        return [
            one
            for state in self.runtime.loaded_states()
            for one in state.transactions.values()
            if one.state is TransactionState.ONGOING
        ]

    # Markers

    def on_prepared(self, partition: int, transaction: Transaction) -> None:
        """The end of a transaction was decided: write its markers as soon as the decision is committed."""
        self.start(self._write_markers(partition, self.runtime.leader_epoch(partition), transaction))

    async def _write_markers(self, partition: int, leader_epoch: int, transaction: Transaction) -> None:
        def is_current(state: TransactionsState, _: int) -> bool:
            return state.find(transaction.transactional_id) == transaction

        while self._leads(partition, leader_epoch):
            try:
                if not await self.runtime.read(partition, is_current):
                    return
                break
            except KafkaError:
                await asyncio.sleep(RETRY_S)
        # If a new leader epoch has begun meanwhile, the markers are written in that one.
        if not self._leads(partition, leader_epoch):
            return
        written = PendingEnd(
            transaction,
            partition,
            leader_epoch,
            lambda: self.start(self._complete(partition, leader_epoch, transaction)),
        )
        self.markers.write(written)

    async def _complete(self, partition: int, leader_epoch: int, transaction: Transaction) -> None:
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        transactional_id = transaction.transactional_id
        while self._leads(partition, leader_epoch):
            try:
                await self.runtime.run(
                    partition, lambda state, now: operations.complete(state, transactional_id, producer, now)
                )
                return
            except KafkaError as error:
                logger.warning("%s: its completion is written again: %s", transactional_id, error)
                await asyncio.sleep(RETRY_S)

    def _leads(self, partition: int, leader_epoch: int) -> bool:
        """Whether this broker coordinates the partition, in that leader epoch."""
        try:
            return self.runtime.leader_epoch(partition) == leader_epoch
        except KafkaError:
            return False

    # Shards

    def partition_of(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` of an id."""
        count = self._partition_count()
        if count == 0:
            raise KafkaError(
                "__transaction_state does not exist yet", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
            )
        return partition_for(transactional_id, count)

    async def _run(self, transactional_id: str, decide: _Decide[Response]) -> Response:
        """Run an operation that may need a new producer id."""
        partition = self.partition_of(transactional_id)
        try:
            return await self.runtime.run(partition, lambda state, now: decide(state, None, now))
        except ProducerIdNeeded:
            new_id = await self._next_producer_id()
        return await self.runtime.run(partition, lambda state, now: decide(state, new_id, now))
