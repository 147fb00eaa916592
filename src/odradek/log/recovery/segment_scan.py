"""Scans a segment batch by batch: how much of it is valid, and what its indexes should contain.

The CRC does not cover base offset and leader epoch, so they are compared with adjacent batches: both rise,
and in a log that is not compacted the offsets have no gaps. If a value decreases, the batch before is taken
for the damaged one when its own value had jumped ahead, since a flipped bit looks like that.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.log.leader_epochs import EpochEntry, LeaderEpochs
from odradek.log.partition.producer_replay import Replay
from odradek.log.producers.producer_states import ProducerStates
from odradek.log.recovery.scan_kernels import ScanProgress, count_plain, index_batches
from odradek.log.segment.batch_chunks import CHUNK_BYTES, BatchChunk, batch_chunks
from odradek.log.segment.roll import MAX_RELATIVE_OFFSET
from odradek.log.segment.segment import Segment
from odradek.log.segment.time_index import TimestampOffset
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.batch import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from odradek.records.kernels.checksums import count_whole
from odradek.records.kernels.layout import BatchColumn


@dataclass(slots=True)
class SegmentScan:
    """What a scan found. All fields describe the valid batches at the start, `valid_size` bytes of them."""

    next_offset: int
    greatest: TimestampOffset
    valid_size: int = 0
    problem: str | None = None
    offset_entries: bytearray = field(default_factory=bytearray)  # what the index files should hold
    time_entries: bytearray = field(default_factory=bytearray)
    epochs: list[EpochEntry] = field(default_factory=list)
    aborted: list[AbortedTxn] = field(default_factory=list)
    batch_count: int = 0
    shows_compaction: bool = False  # batches lack records, or offsets are missing between them


def scan_segment(
    segment: Segment,
    *,
    checks_crc: bool = True,
    allows_gaps: bool = True,
    epochs: LeaderEpochs | None = None,
    log_start_offset: int = 0,
    producers: ProducerStates | None = None,
) -> SegmentScan:
    """Read all of a segment; may block for as long as that takes.

    `epochs`: the content of the epoch file, if it is valid; it has all epochs from `log_start_offset` on, and
    no batch there has a later one, because the file is written first. `producers`: the state at the start of
    the segment, to which its batches are applied.
    """
    found = SegmentScan(segment.base_offset, TimestampOffset(-1, segment.base_offset))
    checker = _BatchChecker(segment.base_offset, checks_crc, allows_gaps, epochs, log_start_offset)
    index = IndexBuilder(segment.index_interval_bytes, found)
    running = Replay(producers) if producers is not None else None
    chunk_bytes = CHUNK_BYTES
    while found.valid_size < segment.size and found.problem is None:
        start = found.valid_size
        for chunk in batch_chunks(segment.log, start, chunk_bytes):
            checked = checker.check(chunk, is_last=chunk.end_position >= segment.size)
            index.add_batches(chunk, checked.valid_count)
            if running is not None:
                found.aborted += running.apply(chunk, checked.valid_count)
            found.problem = checked.problem or chunk.problem
            if found.problem is not None or checked.must_read_again:
                break
        if found.valid_size == start:
            chunk_bytes *= 2  # a suspect batch fills the chunk; its successor is needed to check it
    if running is not None:
        running.finish()
    return found


class _CheckedChunk(NamedTuple):
    """The first `valid_count` batches of a chunk are valid."""

    valid_count: int
    problem: str | None = None
    must_read_again: bool = False  # from the first batch that is not counted, together with what follows it


class _BatchChecker:
    """Counts the valid batches at the start of each chunk of a segment, passed in order."""

    __slots__ = (
        "allows_gaps",
        "base_offset",
        "checks_crc",
        "epoch",
        "epochs",
        "log_start_offset",
        "next_offset",
    )

    def __init__(
        self,
        base_offset: int,
        checks_crc: bool,
        allows_gaps: bool,
        epochs: LeaderEpochs | None,
        log_start_offset: int,
    ) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.epoch = epochs.epoch_for(base_offset) if epochs is not None else NO_PARTITION_LEADER_EPOCH
        self.checks_crc = checks_crc
        self.allows_gaps = allows_gaps
        self.epochs = epochs
        self.log_start_offset = log_start_offset

    def check(self, chunk: BatchChunk, *, is_last: bool) -> _CheckedChunk:
        """Check the next chunk, and continue after its last valid batch with the next call."""
        if chunk.scan.count == 0:
            return _CheckedChunk(0)
        checked = self._check_order(chunk, is_last or chunk.problem is not None)
        if self.checks_crc:
            whole = count_whole(chunk.buffer, chunk.scan.table, checked.valid_count)
            if whole < checked.valid_count:
                checked = _CheckedChunk(whole, "wrong CRC")
        if checked.valid_count:
            self.next_offset = chunk.scan.field(checked.valid_count - 1, BatchColumn.LAST_OFFSET) + 1
            self.epoch = chunk.scan.field(checked.valid_count - 1, BatchColumn.PARTITION_LEADER_EPOCH)
        return checked

    def _check_order(self, chunk: BatchChunk, is_last: bool) -> _CheckedChunk:
        count, limit = chunk.scan.count, self.base_offset + MAX_RELATIVE_OFFSET
        if count_plain(chunk.scan.table, count, self.next_offset, self.epoch, limit) == count:
            return _CheckedChunk(count)
        return self._check_each(
            chunk.column(BatchColumn.BASE_OFFSET),
            chunk.column(BatchColumn.LAST_OFFSET),
            chunk.column(BatchColumn.PARTITION_LEADER_EPOCH),
            is_last,
        )

    def _check_each(
        self, bases: list[int], lasts: list[int], epochs: list[int], is_last: bool
    ) -> _CheckedChunk:
        next_offset, current_epoch = self.next_offset, self.epoch
        offset_jumped = epoch_jumped = False
        for index, (base, last, epoch) in enumerate(zip(bases, lasts, epochs, strict=True)):
            if base < next_offset:
                return _CheckedChunk(
                    index - offset_jumped, f"offset {base} where {next_offset} or more must be"
                )
            if epoch < current_epoch:
                damaged = index - (epoch_jumped and self._contradicts_epochs(current_epoch, bases[index - 1]))
                return _CheckedChunk(damaged, f"leader epoch {epoch} after {current_epoch}")
            if last < base or last - self.base_offset > MAX_RELATIVE_OFFSET:
                return _CheckedChunk(index, f"last offset {last} of a batch that begins with {base}")
            if self.epochs and epoch > self.epochs.latest and base >= self.log_start_offset:
                return _CheckedChunk(index, f"leader epoch {epoch}, but the latest is {self.epochs.latest}")
            offset_jumped, epoch_jumped = base > next_offset, epoch > current_epoch >= 0
            next_offset, current_epoch = last + 1, epoch
        if not (offset_jumped or epoch_jumped):
            return _CheckedChunk(len(bases))
        if not is_last:
            return _CheckedChunk(len(bases) - 1, must_read_again=True)
        if offset_jumped and not self.allows_gaps:
            return _CheckedChunk(len(bases) - 1, f"offset {bases[-1]} leaves a gap before the last batch")
        return _CheckedChunk(len(bases))

    def _contradicts_epochs(self, epoch: int, offset: int) -> bool:
        """Whether the epoch file has another epoch at that offset, or is not valid."""
        return self.epochs is None or self.epochs.epoch_for(offset) != epoch


class IndexBuilder:
    """Turns batches into the index entries that appending them would have made."""

    __slots__ = ("_base_offset", "_progress", "found", "interval_bytes")

    def __init__(self, interval_bytes: int, found: SegmentScan) -> None:
        self.interval_bytes = interval_bytes
        self.found = found
        self._base_offset = found.next_offset
        self._progress = array("q", bytes(8 * len(ScanProgress)))
        self._progress[ScanProgress.GREATEST_MS] = NO_TIMESTAMP
        self._progress[ScanProgress.GREATEST_OFFSET] = self._base_offset
        self._progress[ScanProgress.LATEST_ENTRY_MS] = NO_TIMESTAMP
        self._progress[ScanProgress.LEADER_EPOCH] = NO_PARTITION_LEADER_EPOCH

    def add_batches(self, chunk: BatchChunk, count: int) -> None:
        """Add the entries for the first `count` batches of a chunk."""
        if count == 0:
            return
        found, progress = self.found, self._progress
        progress[ScanProgress.RECORD_COUNT] = 0
        offset_entries, time_entries = index_batches(
            chunk.scan.table, count, chunk.start, self._base_offset, self.interval_bytes, progress
        )
        found.offset_entries += offset_entries
        found.time_entries += time_entries
        found.greatest = TimestampOffset(
            progress[ScanProgress.GREATEST_MS], progress[ScanProgress.GREATEST_OFFSET]
        )
        if progress[ScanProgress.IS_LATER_EPOCH]:
            self._note_epochs(chunk, count)
        self._note_compaction(chunk, count)
        found.batch_count += count
        found.next_offset = chunk.scan.field(count - 1, BatchColumn.LAST_OFFSET) + 1
        last_position = chunk.start + chunk.position(count - 1)
        found.valid_size = last_position + chunk.scan.field(count - 1, BatchColumn.SIZE_IN_BYTES)

    def _note_compaction(self, chunk: BatchChunk, count: int) -> None:
        found = self.found
        first_offset = (
            found.next_offset if found.batch_count else chunk.scan.field(0, BatchColumn.BASE_OFFSET)
        )
        covered = chunk.scan.field(count - 1, BatchColumn.LAST_OFFSET) + 1 - first_offset
        if self._progress[ScanProgress.RECORD_COUNT] < covered:
            found.shows_compaction = True

    def _note_epochs(self, chunk: BatchChunk, count: int) -> None:
        noted, progress = self.found.epochs, self._progress
        for index, epoch in enumerate(chunk.column(BatchColumn.PARTITION_LEADER_EPOCH)[:count]):
            if epoch > progress[ScanProgress.LEADER_EPOCH]:
                noted.append(EpochEntry(epoch, chunk.scan.field(index, BatchColumn.BASE_OFFSET)))
                progress[ScanProgress.LEADER_EPOCH] = epoch
        progress[ScanProgress.IS_LATER_EPOCH] = 0
