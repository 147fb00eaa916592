"""The state of a producer's transactions: which call may follow, and what is in the transaction. No I/O.

    UNINITIALIZED -> READY -> IN_TRANSACTION -> COMMITTING -> READY
                                    |    |          |
                                    |    +-> ABORTABLE_ERROR -> ABORTING -> READY
                                    +-------------------------> ABORTING
    any of them -> FATAL_ERROR

JOINED is a transaction that another process began and will end; JOINED_ERROR is one in which a record of
this process failed.
"""

from __future__ import annotations

from enum import Enum

from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.transactions.errors import (
    FatalTransactionError,
    TransactionError,
    TransactionStateError,
)
from odradek.common.ids import TopicPartition


class Phase(Enum):
    """The phase of a producer's transaction."""

    UNINITIALIZED = "init_transactions() was not called"
    READY = "no transaction was begun"
    IN_TRANSACTION = "a transaction is open"
    COMMITTING = "a commit was begun"
    ABORTING = "an abort was begun"
    ABORTABLE_ERROR = "the transaction failed, and can only be aborted"
    FATAL_ERROR = "the producer failed"
    JOINED = "the transaction belongs to another process"
    JOINED_ERROR = "a record failed in the transaction of another process, which must abort it"


class ProducerTransactionState:
    """The transaction of one producer. Owned by the manager."""

    def __init__(self) -> None:
        self.phase = Phase.UNINITIALIZED
        self.error: TransactionError | None = None
        self.producer: ProducerId | None = None
        self.partitions: set[TopicPartition] = set()
        """Partitions that the coordinator has in the transaction, or (v2) has after the next produce."""
        self.pending: set[TopicPartition] = set()
        """Partitions that must be added before records are sent to them (v1)."""
        self.is_started = False
        """Whether the coordinator may know of the transaction, so that it must be ended there."""
        self.is_end_sent = False
        """Whether EndTxn was sent, so that the other outcome is not possible any more."""
        self.needs_new_epoch = False
        """Whether a numbered batch failed, so that its sequence must not be continued."""

    def require(self, call: str, *allowed: Phase) -> None:
        """The error of the transaction, or TransactionStateError, unless the phase is one of these."""
        if self.phase in allowed:
            return
        if self.error is not None:
            raise self.error.with_traceback(None)
        raise TransactionStateError(f"{call}: {self.phase.value}")

    def initialized(self, producer: ProducerId) -> None:
        """The coordinator has returned an id and an epoch."""
        self.phase, self.producer = Phase.READY, producer
        self._clear()

    def joined(self, producer: ProducerId) -> None:
        """The id and the epoch are those of another process."""
        self.phase, self.producer = Phase.JOINED, producer
        self._clear()

    def begun(self) -> None:
        """A transaction is open."""
        self.phase = Phase.IN_TRANSACTION

    def ended(self, producer: ProducerId) -> None:
        """The transaction is committed or aborted; the next one has this id and epoch."""
        self.phase, self.producer = Phase.READY, producer
        self._clear()

    def _clear(self) -> None:
        self.error = None
        self.partitions.clear()
        self.pending.clear()
        self.is_started = self.is_end_sent = self.needs_new_epoch = False

    def begin_abort(self) -> None:
        """Abort; also after a commit for which the records were not delivered in time."""
        allowed = [Phase.IN_TRANSACTION, Phase.ABORTABLE_ERROR, Phase.ABORTING]
        if not self.is_end_sent:
            allowed.append(Phase.COMMITTING)
        self.require("abort_transaction", *allowed)
        self.phase = Phase.ABORTING

    def failed(self, error: TransactionError) -> bool:
        """The transaction failed; False if that was known."""
        if self.phase is Phase.FATAL_ERROR:
            return False
        if isinstance(error, FatalTransactionError):
            self.phase, self.error = Phase.FATAL_ERROR, error
            return True
        if self.phase is Phase.JOINED:
            self.phase, self.error = Phase.JOINED_ERROR, error
            return True
        if self.phase in (Phase.IN_TRANSACTION, Phase.COMMITTING):
            self.phase, self.error = Phase.ABORTABLE_ERROR, error
            return True
        return False

    @property
    def may_send(self) -> bool:
        """Whether batches may be sent now."""
        return self.phase in (Phase.IN_TRANSACTION, Phase.COMMITTING, Phase.JOINED)

    def is_in_transaction(self, partition: TopicPartition, *, uses_v2: bool) -> bool:
        """Whether records may be sent to a partition; if not, it is pending from now on.

        In v2 the leader adds the partition when it gets the first batch.
        """
        if partition in self.partitions:
            return True
        if uses_v2:
            self.partitions.add(partition)
            self.is_started = True
            return True
        self.pending.add(partition)
        return False

    def added(self, partitions: set[TopicPartition]) -> None:
        """The coordinator has these in the transaction."""
        self.partitions |= partitions
        self.pending -= partitions
        self.is_started = True
