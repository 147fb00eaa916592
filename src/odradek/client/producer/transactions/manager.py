"""The transactions of one producer: begins and ends them, and decides what the sender may send.

Lives on the producer's loop. A transaction that fails accepts no more records, and its unsent records fail;
the transaction is ended when no request is in flight.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.errors import BrokerError, ClientError, is_retriable
from odradek.client.producer.batches.accumulator import Accumulator
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.transactions.errors import (
    FatalTransactionError,
    TransactionAborted,
    TransactionError,
    TransactionStateError,
    transaction_error,
)
from odradek.client.producer.transactions.requests import TransactionRequests
from odradek.client.producer.transactions.state import Phase, ProducerTransactionState
from odradek.common.ids import TopicPartition

LAST_PRODUCE_OF_V1 = 11

_log = logging.getLogger("odradek.producer")


class BatchSender(Protocol):
    """What a transaction needs of the sender."""

    producer: ProducerId | None

    def drop_unsent(self, error: BaseException) -> None:
        """Fail the batches that are not in flight."""

    async def wait_until_none_in_flight(self) -> None:
        """Wait until no batch is in flight."""

    def continue_sequences(self, sequences: Mapping[TopicPartition, int]) -> None:
        """Number the next batches as another process would."""


class TransactionManager:
    """Owned by the engine of a producer with a transactional id."""

    def __init__(
        self,
        requests: TransactionRequests,
        accumulator: Accumulator,
        sender: BatchSender,
        transaction_timeout_ms: int,
    ) -> None:
        self.transactional_id = requests.transactional_id
        self._requests = requests
        self._accumulator = accumulator
        self._sender = sender
        self._timeout_ms = transaction_timeout_ms
        self._state = ProducerTransactionState()
        self._adding = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._refuse_records()

    # For the sender.

    @property
    def uses_v2(self) -> bool:
        """Whether brokers add partitions to the transaction by themselves."""
        return self._requests.uses_v2

    @property
    def has_pending_partitions(self) -> bool:
        """Whether partitions wait to be added."""
        return self._state.may_send and bool(self._state.pending)

    @property
    def may_send(self) -> bool:
        """Whether batches of the transaction may be sent, now or again."""
        return self._state.may_send

    def may_send_to(self, partition: TopicPartition) -> bool:
        """Whether batches for a partition may be sent now."""
        state = self._state
        return state.may_send and state.is_in_transaction(partition, uses_v2=self.uses_v2)

    async def add_partitions(self) -> None:
        """Add the partitions that wait for it (v1)."""
        async with self._adding:
            state, partitions = self._state, set(self._state.pending)
            if not partitions or not state.may_send or state.producer is None:
                return
            try:
                await self._requests.add_partitions(state.producer, partitions)
            except (BrokerError, ClientError) as error:
                self._fail(transaction_error(error))
            else:
                state.added(partitions)

    def batch_failed(self, error: BaseException) -> None:
        """A batch failed for good: so has its transaction."""
        self._state.needs_new_epoch = True
        self._fail(transaction_error(error, from_partition=True))

    def sequence_lost(self) -> None:
        """A numbered batch was dropped: the next transaction needs another epoch."""
        self._state.needs_new_epoch = True

    def _fail(self, error: TransactionError) -> None:
        if self._state.failed(error):
            _log.debug("transaction of %s: %s", self.transactional_id, error)
            self._refuse_records()
            self._loop.call_soon(self._sender.drop_unsent, error)

    def _refuse_records(self) -> None:
        phase = self._state.phase
        self._accumulator.reject_records(self._state.error or TransactionStateError(f"send: {phase.value}"))

    # For users.

    async def init(self) -> None:
        """Get an id and an epoch; earlier producers with this transactional id are fenced."""
        state = self._state
        state.require("init_transactions", Phase.UNINITIALIZED)
        state.initialized(await self._request_id())
        self._sender.producer = state.producer
        self._refuse_records()

    async def _request_id(self, current: ProducerId | None = None) -> ProducerId:
        try:
            if current is None:
                return await self._requests.init_producer_id(self._timeout_ms)
            return await self._requests.init_producer_id(self._timeout_ms, current)
        except (BrokerError, ClientError) as error:
            raise self._failure(error) from error

    def begin(self) -> None:
        """Open a transaction: records are accepted from now on."""
        self._state.require("begin_transaction", Phase.READY)
        self._state.begun()
        self._accumulator.accept_records()

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """Make offsets of a group part of the transaction."""
        state = self._state
        state.require("send_offsets_to_transaction", Phase.IN_TRANSACTION, Phase.JOINED)
        if not offsets:
            return
        assert state.producer is not None
        try:
            if not self.uses_v2:
                await self._add_offsets(state.producer, group.group_id)
            state.is_started = True
            await self._requests.commit_offsets(state.producer, group, offsets)
        except (BrokerError, ClientError) as error:
            raise self._failure(error) from error

    async def _add_offsets(self, producer: ProducerId, group_id: str) -> None:
        """Add a group (v1). The coordinator knows nothing of one that it refused, and has nothing to end."""
        async with self._adding:
            try:
                await self._requests.add_offsets(producer, group_id)
            except BrokerError:
                raise
            except BaseException:
                self._state.is_started = True  # without an answer the group may have been added
                raise
            self._state.is_started = True

    def begin_commit(self) -> None:
        """Accept no more records; `commit` follows when all are delivered. Allowed again after a time-out."""
        self._state.require("commit_transaction", Phase.IN_TRANSACTION, Phase.COMMITTING)
        self._state.phase = Phase.COMMITTING
        self._refuse_records()

    async def commit(self) -> None:
        """Commit; the error of the transaction if it failed."""
        self._state.require("commit_transaction", Phase.COMMITTING)
        await self._end(commits=True)

    async def abort(self) -> None:
        """Drop what was not sent, wait for what was, and abort. May be called again after a time-out."""
        state = self._state
        state.begin_abort()
        self._refuse_records()
        self._sender.drop_unsent(state.error or TransactionAborted("the transaction was aborted"))
        await self._sender.wait_until_none_in_flight()
        async with self._adding:
            await self._end(commits=False)

    async def _end(self, *, commits: bool) -> None:
        state = self._state
        producer = state.producer
        assert producer is not None
        needs_new_epoch = state.needs_new_epoch
        try:
            if state.is_started:
                state.is_end_sent = True
                following = await self._requests.end(producer, commits=commits)
                needs_new_epoch = needs_new_epoch and following == producer
                # So that a call that is repeated after a time-out does not end it twice.
                state.is_started, state.producer = False, following
                producer = following
            if needs_new_epoch:
                producer = await self._requests.init_producer_id(self._timeout_ms, producer)
        except (BrokerError, ClientError) as error:
            raise self._failure(error) from error
        state.ended(producer)
        self._sender.producer = producer
        self._refuse_records()

    def _failure(self, error: BrokerError | ClientError) -> BaseException:
        """What a failed request means; after a time-out the same call may be repeated."""
        if is_retriable(error) or (isinstance(error, ClientError) and isinstance(error, TimeoutError)):
            return error
        made = transaction_error(error)
        is_final = isinstance(made, FatalTransactionError)
        if is_final or self._state.phase in (Phase.IN_TRANSACTION, Phase.COMMITTING, Phase.JOINED):
            self._fail(made)
            return made
        return error

    @property
    def is_open(self) -> bool:
        """Whether a transaction of this producer must be aborted before it is closed."""
        return self._state.phase in (
            Phase.IN_TRANSACTION,
            Phase.COMMITTING,
            Phase.ABORTABLE_ERROR,
            Phase.ABORTING,
        )

    # A transaction of another process.

    async def join(self, producer: ProducerId, sequences: Mapping[TopicPartition, int]) -> None:
        """Send records in a transaction that another process began and will end."""
        self._state.require("join_transaction", Phase.UNINITIALIZED, Phase.JOINED, Phase.JOINED_ERROR)
        await self._sender.wait_until_none_in_flight()
        await self._requests.connect()
        self._state.joined(producer)
        self._sender.producer = producer
        self._sender.continue_sequences(sequences)
        self._accumulator.accept_records()
