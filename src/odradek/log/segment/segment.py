"""One slice of a partition on disk: a log file, two sparse indexes and a list of aborted transactions."""

from __future__ import annotations

import os
from collections.abc import Callable

from odradek.log import filenames
from odradek.log.errors import DamagedIndex
from odradek.log.files.file_system import Buffer
from odradek.log.files.log_file import LogFile, PartitionDirectory
from odradek.log.segment.offset_index import OffsetIndex
from odradek.log.segment.roll import SegmentFacts
from odradek.log.segment.segment_reader import BatchSpan, SegmentReader
from odradek.log.segment.sparse_index import PENDING_LIMIT
from odradek.log.segment.time_index import TimeIndex, TimestampOffset
from odradek.log.segment.txn_index import AbortedTxn, TxnIndex


class Segment(SegmentReader):
    """One slice of a partition.

    Invariant: base_offset <= every offset here <= base_offset + 2**31 - 1, because the indexes keep offsets
    as 4-byte distances from base_offset. Owned by its PartitionLog: one writer, no lock. Other threads may
    read (`position_of`, `read`, `walk`, the lookups): a batch becomes visible to them by one assignment,
    that of the file's size, after it was written.
    """

    __slots__ = (
        "created_ms",
        "directory",
        "roll_jitter_ms",
        "state",
        "txn_index",
    )

    def __init__(
        self,
        directory: PartitionDirectory,
        base_offset: int,
        *,
        index_interval_bytes: int,
        created_ms: int,
        sizes: dict[str, int],
        roll_jitter_ms: int = 0,
        state: str = "",
    ) -> None:
        """A segment whose files exist; `sizes` has the length of each by kind (`.log`, `.index`, …)."""
        self.directory = directory
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.state = state

        def file(kind: str) -> LogFile:
            name = filenames.segment_filename(base_offset, kind, state)
            return LogFile(directory, name, sizes.get(kind, 0))

        super().__init__(
            base_offset,
            file(filenames.LOG),
            OffsetIndex(file(filenames.OFFSET_INDEX), base_offset),
            TimeIndex(file(filenames.TIME_INDEX), base_offset),
            index_interval_bytes,
        )
        self.log.grow_in_steps()
        self.txn_index = TxnIndex(file(filenames.TXN_INDEX), is_created=filenames.TXN_INDEX in sizes)

    @classmethod
    def create(
        cls,
        directory: PartitionDirectory,
        base_offset: int,
        *,
        index_interval_bytes: int,
        now_ms: int,
        roll_jitter_ms: int = 0,
        state: str = "",
        preallocated_bytes: int = 0,
    ) -> Segment:
        """Make the files of a new, empty segment."""
        segment = cls(
            directory,
            base_offset,
            index_interval_bytes=index_interval_bytes,
            created_ms=now_ms,
            sizes={},
            roll_jitter_ms=roll_jitter_ms,
            state=state,
        )
        try:
            segment._create_files(preallocated_bytes)
        except OSError:
            # A log file left behind would look like a segment of its own at the next start.
            for file in segment.files():
                directory.files.remove(file.path)
            raise
        segment.set_max_timestamp(TimestampOffset(-1, base_offset))
        return segment

    def _create_files(self, preallocated_bytes: int) -> None:
        for file in self.files():
            file.create()
        # Two handles less for each partition that is only opened and not written.
        self.offset_index.file.close()
        self.time_index.file.close()
        if preallocated_bytes:
            self.log.reserve(preallocated_bytes)

    def __repr__(self) -> str:
        return f"Segment({self.log.path}, {self.size} bytes)"

    # Writing

    def make_room(self) -> None:
        """Write out index entries that wait; before an append, so that a full disk refuses it whole."""
        if self._pending_entries >= PENDING_LIMIT:
            self.write_pending()

    def append_aborted(self, aborted: AbortedTxn) -> None:
        """Note a transaction whose abort marker was appended here."""
        self.txn_index.append(aborted)

    def seal(self) -> None:
        """No more appends: the indexes are completed, as the greatest timestamp must be the last entry."""
        self.time_index.append_if_later(*self.max_timestamp())
        self.write_pending()
        self.log.give_back_room()
        self.forget_boundaries()
        self._next_reads = ({}, {})

    def write_pending(self) -> None:
        """Hand what the indexes keep in memory to their files."""
        self.offset_index.write_pending()
        self.time_index.write_pending()
        self._pending_entries = 0

    def truncate_to(self, offset: int) -> int:
        """Drop every batch that reaches `offset` or beyond; the bytes that went."""
        position = self.position_of(offset)
        if position is None:
            return 0
        dropped = self.size - position
        self.forget_boundaries()
        self._next_reads = ({}, {})
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        self.log.truncate(position)
        self._bytes_since_index = 0
        self._checked_index_bytes = -1
        self._first_timestamp_ms = None
        self.set_max_timestamp(None)
        return dropped

    def replace_indexes(
        self,
        offset_entries: Buffer,
        time_entries: Buffer,
        greatest: TimestampOffset,
    ) -> None:
        """Replace both indexes by the entries that a scan of the log has found, encoded as in the files."""
        self._create_if_missing(self.offset_index.file)
        self._create_if_missing(self.time_index.file)
        self.offset_index.replace(offset_entries)
        self.time_index.replace(time_entries)
        self.set_max_timestamp(greatest)
        self._bytes_since_index = 0
        self._checked_index_bytes = -1
        self.forget_boundaries()
        self._next_reads = ({}, {})

    def _create_if_missing(self, file: LogFile) -> None:
        if file.size == 0:
            file.create()

    # Reading

    def batch_at(self, span: BatchSpan) -> bytes:
        """The bytes of a batch; may block."""
        return self.log.read(span.position, span.size)

    # Time

    def first_timestamp_ms(self) -> int:
        """The greatest timestamp of the first batch, -1 without; the clock by which the segment rolls."""
        if self._first_timestamp_ms is None:
            if self.size == 0:
                return -1
            self._first_timestamp_ms = self.span_at(0).max_timestamp_ms
        return self._first_timestamp_ms

    def _find_max_timestamp(self) -> TimestampOffset:
        """By the last entry of the time index, and what lies behind it."""
        greatest = TimestampOffset(-1, self.base_offset)
        position: int | None = 0
        last = self.trusted(self.time_index.last)
        if last is not None:
            greatest, position = last, self.position_of(last.offset)
        for span in self.walk(position or 0):
            if span.max_timestamp_ms > greatest.timestamp_ms:
                greatest = TimestampOffset(span.max_timestamp_ms, span.last_offset)
        return greatest

    def trusted(self, lookup: Callable[[], TimestampOffset | None]) -> TimestampOffset | None:
        """What a lookup in the time index says, if the log confirms it; else None, which means: scan all."""
        try:
            entry = lookup()
        except DamagedIndex:
            return None
        if entry is None:
            return None
        position = self.position_of(entry.offset) if entry.offset >= self.base_offset else None
        if position is not None and self.span_at(position).max_timestamp_ms == entry.timestamp_ms:
            return entry
        return None

    def first_batch_at_or_after(self, timestamp_ms: int, start_offset: int) -> BatchSpan | None:
        """The first batch from `start_offset` on that has a record as young as that."""
        before = self.trusted(lambda: self.time_index.lookup_before(timestamp_ms))
        start_offset = max(start_offset, before.offset if before is not None else start_offset)
        position = self.position_of(start_offset)
        if position is None:
            return None
        return next((s for s in self.walk(position) if s.max_timestamp_ms >= timestamp_ms), None)

    def largest_timestamp_ms(self) -> int:
        """For retention: the greatest timestamp, or, when no record has one, the file's last change."""
        greatest = self.max_timestamp().timestamp_ms
        return greatest if greatest >= 0 else int(os.stat(self.log.path).st_mtime * 1000)

    def facts(self, max_index_bytes: int) -> SegmentFacts:
        """What the roll conditions look at."""
        return SegmentFacts(
            self.base_offset,
            self.size,
            self.created_ms,
            self.first_timestamp_ms(),
            self.is_index_full(max_index_bytes),
            self.roll_jitter_ms,
        )

    # Files

    def files(self) -> list[LogFile]:
        """The files that exist, the log first."""
        files = [self.log, self.offset_index.file, self.time_index.file]
        return [*files, self.txn_index.file] if self.txn_index.is_created else files

    def rename(self, state: str) -> None:
        """Change what follows the name of every file: "", .deleted, .cleaned or .swap.

        The log goes first, since it decides: a crash in between leaves a log without its indexes, which are
        rebuilt, or indexes without their log, which are dropped.
        """
        for file in self.files():
            file.rename(file.name.removesuffix(self.state) + state)
        self.state = state

    def close(self) -> None:
        """Let go of every handle; what is pending must have been written."""
        for file in self.files():
            file.close()
