# cython: annotation_typing=False
"""Where batches are in a segment: by the sparse index, then by walking over their headers.

Compiled by Cython (segment_reader.pxd has the C types), or interpreted as is. A base class of the segment, so
that nothing lies between a read and the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import cython

from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.log.segment.offset_index import OffsetIndex, OffsetPosition
from odradek.log.segment.segment_appender import SegmentAppender
from odradek.log.segment.time_index import TimeIndex
from odradek.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC
from odradek.records.errors import CorruptBatch, TruncatedBatch

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int32_at, int64_at
else:
    from odradek.common.byte_access import int32_at, int64_at

_HEADER_SIZE, _LOG_OVERHEAD, _MAGIC = HEADER_SIZE, LOG_OVERHEAD, MAGIC
# Of a batch header, which begins with the base offset.
_LENGTH_AT, _MAGIC_AT, _LAST_OFFSET_DELTA_AT, _MAX_TIMESTAMP_AT = 8, 16, 23, 35
_WALK_CHUNK = 4096
_NEXT_READS_KEPT = 32


class BatchSpan:
    """A batch as a place in a segment."""

    __slots__ = ("base_offset", "last_offset", "max_timestamp_ms", "position", "size")

    def __init__(
        self, position: int, base_offset: int, last_offset: int, size: int, max_timestamp_ms: int
    ) -> None:
        self.position = position
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.size = size
        self.max_timestamp_ms = max_timestamp_ms

    @property
    def end_position(self) -> int:
        """Where the next batch begins."""
        return self.position + self.size


class Boundary:
    """A place between two batches, and the first offset of the batch that begins there; -1 at the end."""

    __slots__ = ("base_offset", "position")

    def __init__(self, position: int, base_offset: int) -> None:
        self.position = position
        self.base_offset = base_offset


class SegmentReader(SegmentAppender):
    """What a read looks at; everything else of a segment is in the class that inherits. Any thread."""

    _next_reads: tuple[dict[int, int], dict[int, int]]

    def __init__(
        self,
        base_offset: int,
        log: LogFile,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        index_interval_bytes: int,
    ) -> None:
        super().__init__(base_offset, log, offset_index, time_index, index_interval_bytes)
        # Where the batches after the last reads begin, by base offset: what the same readers ask for next.
        # Two generations, since to drop single entries would not be safe among threads.
        self._next_reads = ({}, {})

    def walk(self, position: int = 0, end: int | None = None) -> Iterator[BatchSpan]:
        """The batches from `position`, where one begins, on; CorruptBatch where the bytes are no batch."""
        end = self.log.size if end is None else end
        chunk, chunk_start = b"", position
        while position < end:
            if position + HEADER_SIZE > chunk_start + len(chunk):
                chunk, chunk_start = self.log.read(position, _WALK_CHUNK), position
            span = _read_span(chunk, position - chunk_start, position)
            if span.end_position > end:
                raise TruncatedBatch(f"{end - position} bytes left of a batch of {span.size}", position)
            yield span
            position = span.end_position

    def position_of(self, offset: int) -> int | None:
        """Where the first batch begins that holds `offset` or a later one; None if there is none."""
        recent = self.known_position(offset)
        if recent >= 0:
            return recent
        for next_reads in self._next_reads:
            known = next_reads.get(offset)
            if known is not None:
                return known
        for span in self.walk(self._scan_start(offset)):
            if span.last_offset >= offset:
                return span.position
        return None

    def _scan_start(self, offset: int) -> int:
        """A position to look for `offset` from: by the index if it is right, else the beginning."""
        try:
            entry = self.offset_index.lookup(offset)
            if entry is None:
                return 0
            self._checked_span(entry)
        except DamagedIndex:
            return 0
        return entry.position

    def _checked_span(self, entry: OffsetPosition) -> BatchSpan:
        """The batch at the entry's position; DamagedIndex if none begins there, or one above the entry."""
        if not 0 <= entry.position < self.log.size:
            raise DamagedIndex(f"{self.offset_index.file.path}: {entry} points outside of the log")
        try:
            span = self.span_at(entry.position)
        except CorruptBatch as error:
            raise DamagedIndex(f"{self.offset_index.file.path}: {entry} points to no batch") from error
        if not self.base_offset <= span.base_offset <= entry.offset:
            raise DamagedIndex(
                f"{self.offset_index.file.path}: {entry} points to a batch of {span.base_offset}"
            )
        return span

    def span_at(self, position: int) -> BatchSpan:
        """The batch that begins at `position`; CorruptBatch if none does."""
        return _read_span(self.log.read(position, _HEADER_SIZE), 0, position)

    def floor_boundary(self, start: int, target: int) -> Boundary:
        """The last place <= target where a batch begins or ends, at or after `start`, where one begins."""
        try:
            entry = self.offset_index.lookup_position(target)
            if entry is not None and entry.position > start:
                span = self._checked_span(entry)
                if span.end_position > target:
                    return Boundary(span.position, span.base_offset)
                start = span.end_position
        except DamagedIndex:
            pass
        for span in self.walk(start):
            if span.end_position > target:
                return Boundary(span.position, span.base_offset)
            start = span.end_position
        return Boundary(start, -1)

    def note_next_read(self, offset: int, position: int) -> None:
        """A read has ended before the batch that begins there with that offset. Any thread."""
        newer, _ = self._next_reads
        if len(newer) >= _NEXT_READS_KEPT:
            newer, _ = self._next_reads = ({}, newer)
        newer[offset] = position

    def next_offset(self) -> int:
        """The offset after the last batch; read from the file, from the last index entry on."""
        next_offset = self.base_offset
        for span in self.walk(self._scan_start(2**62)):
            next_offset = span.last_offset + 1
        return next_offset


def _read_span(chunk: bytes, at: int, position: int) -> BatchSpan:
    if len(chunk) - at < _HEADER_SIZE:
        raise TruncatedBatch(f"{len(chunk) - at} bytes left, a batch header has {_HEADER_SIZE}", position)
    raw = chunk
    base_offset = int64_at(raw, at)
    length = int32_at(raw, at + _LENGTH_AT)
    last_offset_delta = int32_at(raw, at + _LAST_OFFSET_DELTA_AT)
    is_batch = raw[at + _MAGIC_AT] == _MAGIC and length >= _HEADER_SIZE - _LOG_OVERHEAD
    if not is_batch or last_offset_delta < 0 or base_offset < 0:
        raise CorruptBatch("no batch begins here", position)
    return BatchSpan(
        position,
        base_offset,
        base_offset + last_offset_delta,
        length + _LOG_OVERHEAD,
        int64_at(raw, at + _MAX_TIMESTAMP_AT),
    )
