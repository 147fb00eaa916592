# cython: annotation_typing=False
"""What a partition knows of its producers: sequences, open transactions, the last stable offset. Pure.

The rules, as a table:

    producer's batch                                  answer
    same epoch, sequences of one of the last five     duplicate: acknowledged with its old offsets
    same epoch, sequence follows the last one         accepted; after 2**31 - 1 comes 0
    same epoch, any other sequence                    OutOfOrderSequence
    older epoch                                       InvalidProducerEpoch
    newer epoch, sequence 0                           accepted
    newer epoch, other sequence                       OutOfOrderSequence
    producer unknown here                             accepted with any sequence: its records may have expired
    plain batch while a transaction is open           InvalidTxnState

Followers and recovery only `apply`: what a leader has accepted is not judged again.

Compiled by Cython (producers.pxd has the C types), or interpreted as is.
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
    """One appended batch, as much of it as tells a duplicate."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def base_offset(self) -> int:
        """Offset of the batch's first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """Sequence of the batch's first record; sequences wrap."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class Marker(NamedTuple):
    """What an end-of-transaction marker says."""

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


class ProducerEntry:
    """The state of one producer id; owned by its ProducerStates."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
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
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp_ms = last_timestamp_ms
        self.current_txn_first_offset = current_txn_first_offset
        self.batches = batches

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
        """Sequences start anew with an epoch."""
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches = ()

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether the producer has been silent for too long; never within a transaction."""
        return self.current_txn_first_offset < 0 and now_ms - self.last_timestamp_ms >= expiration_ms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProducerEntry):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"ProducerEntry({facts})"


class ProducerStates:
    """All producers of one log; owned by its PartitionLog, called where the log is.

    `end_offset`: every batch below it is reflected here.
    """

    __slots__ = ("end_offset", "entries", "ongoing", "unreplicated")

    def __init__(self, entries: Iterable[ProducerEntry] = (), end_offset: int = 0) -> None:
        self.entries: dict[int, ProducerEntry] = {entry.producer_id: entry for entry in entries}
        # First offset of each open transaction -> its producer, in rising order.
        self.ongoing: dict[int, int] = {}
        # Transactions ended by a marker that the high watermark has not passed: first -> last offset.
        self.unreplicated: dict[int, int] = {}
        self.end_offset = end_offset
        open_ones = (e for e in self.entries.values() if e.current_txn_first_offset >= 0)
        for entry in sorted(open_ones, key=lambda e: e.current_txn_first_offset):
            self.ongoing[entry.current_txn_first_offset] = entry.producer_id

    # Decisions

    def duplicate_of(self, header: BatchHeader) -> BatchMetadata | None:
        """The earlier append of this very batch, if it is still remembered."""
        entry = self.entries.get(header.producer_id)
        return entry.duplicate_of(header) if entry is not None else None

    def check(self, header: BatchHeader, *, checks_sequence: bool = True) -> None:
        """Raise what the table above says; coordinators write without sequences."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(header.producer_id, header.producer_epoch, entry.producer_epoch)
        if checks_sequence and not _continues(entry, header):
            raise OutOfOrderSequence(header.producer_id, header.base_sequence, entry.last_sequence)
        if entry.current_txn_first_offset >= 0 and not header.is_transactional:
            raise InvalidTxnState(header.producer_id)

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
        """Whether this life of the producer has a transaction open here."""
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset >= 0
            and entry.producer_epoch == producer_epoch
        )

    # Changes

    def apply(self, header: BatchHeader, marker: Marker | None = None) -> CompletedTxn | None:
        """Take in a batch that was written; the transaction it ended, if it did."""
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
        batch = BatchMetadata(
            header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp_ms
        )
        entry.batches = (*entry.batches[1 - BATCHES_KEPT :], batch)
        entry.last_timestamp_ms = header.max_timestamp_ms
        if header.is_transactional and entry.current_txn_first_offset < 0:
            entry.current_txn_first_offset = header.base_offset
            self.ongoing[header.base_offset] = header.producer_id

    def _apply_marker(self, header: BatchHeader, marker: Marker) -> CompletedTxn | None:
        entry = self._entry(header.producer_id)
        first_offset = entry.current_txn_first_offset
        entry.enter_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = marker.timestamp_ms
        entry.current_txn_first_offset = NO_OFFSET
        if first_offset < 0:
            return None  # a transaction without records here holds nobody back
        del self.ongoing[first_offset]
        self.unreplicated[first_offset] = header.base_offset
        last_stable_offset = next(iter(self.ongoing), header.next_offset)
        return CompletedTxn(
            header.producer_id, first_offset, header.base_offset, not marker.is_commit, last_stable_offset
        )

    def on_high_watermark(self, high_watermark: int) -> None:
        """Ended transactions whose marker is committed hold nobody back any more."""
        if self.unreplicated:
            self.unreplicated = {
                first: last for first, last in self.unreplicated.items() if last >= high_watermark
            }

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers silent for `producer.id.expiration.ms`; how many went."""
        expired = [e.producer_id for e in self.entries.values() if e.is_expired(now_ms, expiration_ms)]
        for producer_id in expired:
            del self.entries[producer_id]
        return len(expired)

    # Answers

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
