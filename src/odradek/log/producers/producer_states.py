# cython: annotation_typing=False
"""The producer state of a partition: sequences, open transactions, the last stable offset. Pure.

The rules, as a table:

    producer's batch                                  result
    same epoch, sequences of one of the last five     duplicate: acknowledged with its old offsets
    same epoch, sequence follows the last one         accepted; after 2**31 - 1 comes 0
    same epoch, any other sequence                    OutOfOrderSequence
    older epoch                                       InvalidProducerEpoch
    newer epoch, sequence 0                           accepted
    newer epoch, other sequence                       OutOfOrderSequence
    producer unknown here                             accepted with any sequence: its state may have expired
    first of a transaction, after one that was not    OutOfOrderSequence
      verified yet and has a lower sequence
    first of a v2 transaction of an unknown producer, OutOfOrderSequence
      sequence other than 0
    plain batch while a transaction is open           InvalidTxnState

Followers and recovery only `apply`: what a leader has accepted is not checked again.

Compiled by Cython (producer_states.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.log.errors import CoordinatorFenced, InvalidProducerEpoch, InvalidTxnState, OutOfOrderSequence
from odradek.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader

BATCHES_KEPT = 5
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1
MAX_SEQUENCE = 2**31 - 1


class BatchMetadata(NamedTuple):
    """One appended batch, with the fields that identify a duplicate."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @classmethod
    def of(cls, header: BatchHeader) -> BatchMetadata:
        """Those of a batch in the log."""
        return cls(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms
        )

    @property
    def base_offset(self) -> int:
        """Offset of the batch's first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """Sequence of the batch's first record; sequences wrap."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class Marker(NamedTuple):
    """An end-of-transaction marker."""

    is_commit: bool
    coordinator_epoch: int
    timestamp_ms: int


class CompletedTxn(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int  # the next open transaction, or the offset after the marker


class Verification:
    """The question whether a producer's transaction has this partition, until its first batch is appended.

    A marker makes it void: a batch that was verified for one transaction must not be appended to the next.
    `lowest_sequence` is what the transaction begins with: a later batch must not overtake one that was
    refused while the coordinator could not be asked. `begins_at_zero`: with transactions v2 each transaction
    has an epoch of its own, so that its first sequence here is 0.
    """

    __slots__ = ("begins_at_zero", "begun_ms", "lowest_sequence", "producer_epoch")

    def __init__(
        self, producer_epoch: int, lowest_sequence: int, begun_ms: int, *, begins_at_zero: bool = False
    ) -> None:
        self.begins_at_zero = begins_at_zero
        self.producer_epoch = producer_epoch
        self.lowest_sequence = lowest_sequence
        self.begun_ms = begun_ms


class ProducerEntry:
    """The state of one producer id; owned by its ProducerStates.

    `is_from_snapshot`: of `batches` only the last one was known when it was loaded; the log has the others.
    """

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "is_from_snapshot",
        "last_timestamp_ms",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp_ms: int = NO_TIMESTAMP,
        current_txn_first_offset: int = NO_OFFSET,
        batches: tuple[BatchMetadata, ...] = (),
        is_from_snapshot: bool = False,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = last_timestamp_ms
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = batches
        self.is_from_snapshot = is_from_snapshot

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, or -1 when the epoch has none here."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record, or -1."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def last_offset_delta(self) -> int:
        """Records in the last batch, less one."""
        return self.batches[-1].offset_delta if self.batches else 0

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The earlier append of the same batch, if it is one of the last five."""
        if header.producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_sequence == header.last_sequence and batch.base_sequence == header.base_sequence:
                return batch
        return None

    def enter_epoch(self, producer_epoch: int) -> None:
        """Start a new epoch, whose sequences begin again."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches = ()
            self.is_from_snapshot = False

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the producer was idle for too long; never within a transaction."""
        return self.current_txn_first_offset < 0 and now_ms - self.last_timestamp_ms >= expiration_ms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerEntry):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _FACTS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FACTS)
        return f"ProducerEntry({facts})"


_FACTS = tuple(name for name in ProducerEntry.__slots__ if name != "is_from_snapshot")


class ProducerStates:
    """All producers of one log; owned by its PartitionLog, called where the log is.

    `end_offset`: every batch below it is reflected here.
    """

    __slots__ = ("end_offset", "entries", "ongoing", "unreplicated", "verifying")

    def __init__(self, entries: Iterable[ProducerEntry] = (), end_offset: int = 0) -> None:
        self.entries: dict[int, ProducerEntry] = {entry.producer_id: entry for entry in entries}
        # First offset of each open transaction -> its producer, in rising order.
        self.ongoing: dict[int, int] = {}
        # Transactions ended by a marker that the high watermark has not passed: first -> last offset.
        self.unreplicated: dict[int, int] = {}
        self.end_offset = end_offset
        # Transactions that may begin here, by producer id and epoch.
        self.verifying: dict[int, dict[int, Verification]] = {}
        open_ones = (e for e in self.entries.values() if e.current_txn_first_offset >= 0)
        for entry in sorted(open_ones, key=lambda e: e.current_txn_first_offset):
            self.ongoing[entry.current_txn_first_offset] = entry.producer_id

    # Decisions

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The earlier append of this batch, if it is one of the last five."""
        entry = self.entries.get(header.producer_id)
        return entry.duplicate_of(header) if entry is not None else None

    def check(self, header: BatchHeader, *, checks_sequence: bool = True) -> None:
        """Raise according to the table above; coordinators write without sequences."""
        if self.verifying and checks_sequence:
            self._check_first_of_transaction(header)
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(header.producer_id, header.producer_epoch, entry.producer_epoch)
        if checks_sequence and not _continues(entry, header):
            raise OutOfOrderSequence(header.producer_id, header.base_sequence, entry.last_sequence)
        if entry.current_txn_first_offset >= 0 and not header.is_transactional:
            raise InvalidTxnState(header.producer_id)

    def _check_first_of_transaction(self, header: BatchHeader) -> None:
        verification = self.verifying.get(header.producer_id, {}).get(header.producer_epoch)
        if verification is None:
            return
        is_unknown = header.producer_id not in self.entries
        lowest = 0 if verification.begins_at_zero and is_unknown else verification.lowest_sequence
        if header.base_sequence > lowest:
            raise OutOfOrderSequence(header.producer_id, header.base_sequence, lowest - 1)

    def check_marker(self, header: BatchHeader, marker: Marker, *, transaction_version: int = 0) -> None:
        """Fence markers of old producers and coordinators.

        Since transactions v2 (KIP-890) a marker carries a higher epoch than the data it ends; an equal one
        is a late copy, unless nothing is open, when it is a harmless repetition.
        """
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        is_late = transaction_version >= 2 and header.producer_epoch == entry.producer_epoch
        if header.producer_epoch < entry.producer_epoch or (is_late and entry.current_txn_first_offset >= 0):
            raise InvalidProducerEpoch(header.producer_id, header.producer_epoch, entry.producer_epoch)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise CoordinatorFenced(header.producer_id, marker.coordinator_epoch, entry.coordinator_epoch)

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has an open transaction here in this epoch."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset >= 0
            and entry.producer_epoch == producer_epoch
        )

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        now_ms: int,
        *,
        begins_at_zero: bool = False,
    ) -> Verification | None:
        """What must still be valid when the batch is appended; None if its transaction is open here.

        Other epochs keep theirs: which one is fenced is for the coordinator to say.
        """
        if self.has_ongoing_transaction(producer_id, producer_epoch):
            return None
        epochs = self.verifying.setdefault(producer_id, {})
        known = epochs.get(producer_epoch)
        if known is None:
            known = epochs[producer_epoch] = Verification(
                producer_epoch, sequence, now_ms, begins_at_zero=begins_at_zero
            )
        else:
            known.lowest_sequence = min(known.lowest_sequence, sequence)
        return known

    def is_valid(self, producer_id: int, verification: Verification) -> bool:
        """Whether no marker was written since the verification began."""
        return self.verifying.get(producer_id, {}).get(verification.producer_epoch) is verification

    def void_verification(self, header: BatchHeader, transaction_version: int) -> None:
        """The leader writes this marker: what was verified for the transaction that it ends is void.

        A v2 marker has the epoch that the next transaction has: what is being verified for that one stays.
        """
        ended_epoch = header.producer_epoch - 1 if transaction_version >= 2 else header.producer_epoch
        self._void_verifications(header.producer_id, ended_epoch)

    def _void_verifications(self, producer_id: int, last_epoch: int) -> None:
        epochs = self.verifying.pop(producer_id, {})
        left = {epoch: one for epoch, one in epochs.items() if epoch > last_epoch}
        if left:
            self.verifying[producer_id] = left

    # Changes

    def apply(self, header: BatchHeader, marker: Marker | None = None) -> CompletedTxn | None:
        """Apply a batch that was written; the transaction it ended, if it did."""
        self.end_offset = header.next_offset
        if header.producer_id < 0:
            return None
        if not header.is_control:
            self._apply_records(header)
            return None
        return self._apply_marker(header, marker) if marker is not None else None

    def _apply_records(self, header: BatchHeader) -> None:
        entry = self._entry(header.producer_id)
        entry.enter_epoch(header.producer_epoch)
        entry.batches = (*entry.batches[1 - BATCHES_KEPT :], BatchMetadata.of(header))
        entry.last_timestamp_ms = header.max_timestamp_ms
        if header.is_transactional and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = header.base_offset
            self._void_verifications(header.producer_id, header.producer_epoch)
            self.ongoing[header.base_offset] = header.producer_id

    def _apply_marker(self, header: BatchHeader, marker: Marker) -> CompletedTxn | None:
        entry = self._entry(header.producer_id)
        first_offset = entry.current_txn_first_offset
        entry.enter_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = marker.timestamp_ms
        entry.current_txn_first_offset = NO_OFFSET
        if first_offset < 0:
            return None  # the transaction has no records here
        del self.ongoing[first_offset]
        self.unreplicated[first_offset] = header.base_offset
        last_stable_offset = next(iter(self.ongoing), header.next_offset)
        return CompletedTxn(
            header.producer_id, first_offset, header.base_offset, not marker.is_commit, last_stable_offset
        )

    def on_high_watermark(self, high_watermark: int) -> None:
        """Ended transactions whose marker is committed no longer hold back the last stable offset."""
        if self.unreplicated:
            self.unreplicated = {
                first: last for first, last in self.unreplicated.items() if last >= high_watermark
            }

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that were idle for `producer.id.expiration.ms`; how many were removed."""
        expired = [e.producer_id for e in self.entries.values() if e.is_expired(now_ms, expiration_ms)]
        for producer_id in expired:
            del self.entries[producer_id]
        for producer_id, epochs in list(self.verifying.items()):
            self.verifying[producer_id] = left = {
                epoch: one for epoch, one in epochs.items() if now_ms - one.begun_ms < expiration_ms
            }
            if not left:
                del self.verifying[producer_id]
        return len(expired)

    # Queries

    @property
    def first_unstable_offset(self) -> int | None:
        """The lowest offset whose transaction is open, or ended but not yet committed."""
        undecided = next(iter(self.ongoing), None)
        if not self.unreplicated:
            return undecided
        unreplicated = min(self.unreplicated)
        return unreplicated if undecided is None else min(undecided, unreplicated)

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        return entry


def _continues(entry: ProducerEntry, header: BatchHeader) -> bool:
    if header.producer_epoch != entry.producer_epoch:
        return header.base_sequence == 0 or entry.producer_epoch == NO_PRODUCER_EPOCH
    following = 0 if entry.last_sequence == MAX_SEQUENCE else entry.last_sequence + 1
    return header.base_sequence == following
