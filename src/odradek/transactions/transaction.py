"""The state of one transactional id as an immutable value, and its transitions. Pure.

    Empty ──add──▶ Ongoing ──end──▶ PrepareCommit ──markers written──▶ CompleteCommit
                      │                                                     │
                      └──end, fence, time-out──▶ PrepareAbort ──────▶ CompleteAbort
                                                                            │
    Empty ◀──init──────────────────────────── both ────add──▶ Ongoing ◀─────┘

With transactions v2 a producer may abort where nothing was added: Empty and both Complete states go to
PrepareAbort as well. Each end of a v2 transaction raises the producer epoch, so that the next transaction has
another one than a late EndTxn or marker.

Dead and PrepareEpochFence exist as names only: an expired id has no state, and an epoch is fenced in the same
step as its transaction is aborted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH = 2**15 - 1
LAST_CLIENT_EPOCH = MAX_EPOCH - 1
"""The last epoch that a client may have: the coordinator can always fence it by the one above."""
EPOCH_BUMP_FROM = 2
"""The transaction.version from which the end of a transaction raises the epoch (KIP-890)."""


class TransactionState(IntEnum):
    """The states, numbered as in the records of `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """The name in the protocol, such as PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))


PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
COMPLETED = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
STATE_OF_LABEL = {state.label: state for state in TransactionState}


class ProducerIdNeeded(OdradekError):
    """The epochs of a producer id are used up: the operation must be repeated with a new producer id."""


class ProducerIdAndEpoch(NamedTuple):
    """What a producer stamps its batches with."""

    producer_id: int
    producer_epoch: int

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no higher epoch for a client."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transactional id.

    `last_producer_epoch`: the epoch before the last bump, of which a retried request still is. It is not in
    the records, so that a retry over a change of the coordinator is fenced, as in Kafka.
    `next_producer_id`: what completes a v2 transaction that has used up the epochs of its producer id.
    `client_version`: the transaction.version that the client used last.
    """

    transactional_id: str
    producer_id: int
    timeout_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    client_version: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no higher epoch for a client."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def is_fenced_for_good(self) -> bool:
        """Whether it is in the epoch above all clients' epochs, and has no producer id to go on with."""
        return self.producer_epoch == MAX_EPOCH and self.next_producer_id == NO_PRODUCER_ID

    @property
    def is_prepared(self) -> bool:
        """Whether its end is decided and markers are to be written."""
        return self.state in PREPARED

    @property
    def is_completed(self) -> bool:
        """Whether its end is decided and all markers are written."""
        return self.state in COMPLETED

    @property
    def is_commit(self) -> bool:
        """Whether a decided transaction was committed."""
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)

    def is_timed_out(self, now_ms: int) -> bool:
        """Whether it has been open for longer than the producer's `transaction.timeout.ms`."""
        return self.state is TransactionState.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the id was not used for `transactional.id.expiration.ms`; never while undecided."""
        is_idle = self.state is TransactionState.EMPTY or self.is_completed
        return is_idle and self.last_update_ms <= now_ms - expiration_ms

    # Transitions

    def with_next_epoch(self, timeout_ms: int, now_ms: int) -> Transaction:
        """Begin again in the next epoch; a producer with the present one is fenced."""
        return self._initialized(self.producer_epoch + 1, NO_PRODUCER_EPOCH, timeout_ms, now_ms)

    def continued(self, expected_epoch: int, timeout_ms: int, now_ms: int) -> Transaction | None:
        """Begin again for the producer that has this epoch (KIP-360); None if it is fenced."""
        if self.producer_epoch in (expected_epoch, NO_PRODUCER_EPOCH):
            return self._initialized(self.producer_epoch + 1, self.producer_epoch, timeout_ms, now_ms)
        if expected_epoch == self.last_producer_epoch:
            # A retry of the request that raised the epoch.
            return self._initialized(self.producer_epoch, self.last_producer_epoch, timeout_ms, now_ms)
        return None

    def rotated(self, producer_id: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """Begin again with a new producer id, because the epochs of the present one are used up.

        `last_epoch` is the epoch of the producer that goes on, NO_PRODUCER_EPOCH if another one begins.
        """
        renewed = self._initialized(0, last_epoch, timeout_ms, now_ms)
        return replace(renewed, producer_id=producer_id)

    def replaced(self, producer_id: int, now_ms: int) -> Transaction:
        """The same, with a new producer id for the one that had to be fenced in its last epoch."""
        return replace(
            self,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=0,
            last_update_ms=now_ms,
        )

    def _initialized(self, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], client_version: int, now_ms: int
    ) -> Transaction:
        """Add partitions; the first ones begin a transaction."""
        is_begun = self.state is TransactionState.ONGOING
        return replace(
            self,
            previous_producer_id=self.producer_id,
            state=TransactionState.ONGOING,
            partitions=self.partitions | added if is_begun else added,
            start_ms=self.start_ms if is_begun else now_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, server_version: int, now_ms: int) -> Transaction:
        """Abort an open transaction in the next epoch, which its producer gets only by InitProducerId.

        With v2 the producer may go on from the epoch it has (KIP-360), in this one; with v1 it is fenced.
        """
        is_v2 = server_version >= EPOCH_BUMP_FROM
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            last_producer_epoch=self.producer_epoch if is_v2 else NO_PRODUCER_EPOCH,
            state=TransactionState.PREPARE_ABORT,
            last_update_ms=now_ms,
            client_version=self._end_version(server_version),
        )

    def _end_version(self, version: int) -> int:
        """The transaction.version of an end: its marker must have an epoch of its own for v2."""
        return version if version >= EPOCH_BUMP_FROM and self.producer_epoch < MAX_EPOCH else 0

    def ended(
        self, *, is_commit: bool, client_version: int, next_producer_id: int, now_ms: int
    ) -> Transaction:
        """Decide the end; the markers are written next."""
        bumps = client_version >= EPOCH_BUMP_FROM
        return replace(
            self,
            previous_producer_id=self.producer_id,
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH) if bumps else self.producer_epoch,
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
            start_ms=self.start_ms if self.state is TransactionState.ONGOING else now_ms,
            last_update_ms=now_ms,
            client_version=self._end_version(client_version),
        )

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written; a used-up producer id is replaced by the next one."""
        rotates = self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=0 if rotates else self.producer_epoch,
            state=TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )
