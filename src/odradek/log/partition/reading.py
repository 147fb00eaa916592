# cython: annotation_typing=False
"""Find the whole batches that answer a read, as a part of one segment's file. Changes nothing; any thread.

Compiled by Cython (reading.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from odradek.log.errors import OffsetOutOfRange, StorageError
from odradek.log.files.file_system import FileRange
from odradek.log.segment.segment import Segment
from odradek.log.segment.segment_reader import Boundary
from odradek.log.segment.segments import Segments
from odradek.log.segment.txn_index import AbortedTxn

if TYPE_CHECKING:
    from odradek.log.partition.log_appender import LogAppender


class Isolation(Enum):
    """How far a read may see."""

    LOG_END = "log end"  # followers
    HIGH_WATERMARK = "read uncommitted"
    COMMITTED = "read committed"


_LOG_END = Isolation.LOG_END
_COMMITTED = Isolation.COMMITTED


class FetchData:
    """What a read finds: whole batches in a segment, or None when there is nothing to read yet.

    `aborted`: the aborted transactions among them, only for Isolation.COMMITTED.
    """

    __slots__ = (
        "aborted",
        "high_watermark",
        "last_stable_offset",
        "log_end_offset",
        "log_start_offset",
        "run",
    )

    def __init__(
        self,
        run: BatchRun | None,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        log_end_offset: int,
        aborted: tuple[AbortedTxn, ...] | None = None,
    ) -> None:
        self.run = run
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.aborted = aborted

    @property
    def range(self) -> FileRange | None:
        """The batches as a part of a file, ready to be sent."""
        return None if self.run is None else self.run.range()


class LogEnd:
    """The end of a log at one moment; taken size first, since an append moves it before the offset."""

    __slots__ = ("active", "active_size", "offset")

    def __init__(self, active: Segment, active_size: int, offset: int) -> None:
        self.active = active
        self.active_size = active_size
        self.offset = offset


class BatchRun:
    """Whole batches, side by side in one segment: bytes [start, end), offsets below `upper_offset`."""

    __slots__ = ("end", "segment", "start", "upper_offset")

    def __init__(self, segment: Segment, start: int, end: int, upper_offset: int) -> None:
        self.segment = segment
        self.start = start
        self.end = end
        self.upper_offset = upper_offset

    def range(self) -> FileRange:
        """The bytes, ready to be sent."""
        return self.segment.log.range(self.start, self.end - self.start)


def read_log(
    log: LogAppender, offset: int, max_bytes: int, isolation: Isolation, min_one_batch: bool
) -> FetchData:
    """What `PartitionLog.read` returns."""
    try:
        # The size first: an append moves it before the offset.
        active = log.segments.active
        end = LogEnd(active, active.log.size, log.log_end_offset)
        if offset < log.log_start_offset or offset > end.offset:
            raise OffsetOutOfRange(offset, log.log_start_offset, end.offset)
        high_watermark = log.high_watermark
        stable_offset = log.stable_offset()
        if isolation is _COMMITTED:
            limit = stable_offset
        else:
            limit = end.offset if isolation is _LOG_END else high_watermark
        run = find_batches(log.segments, end, offset, limit, max_bytes, min_one_batch)
        aborted: tuple[AbortedTxn, ...] | None = None
        if isolation is _COMMITTED:
            aborted = () if run is None else aborted_between(log.segments, offset, run.upper_offset)
    except OSError as error:
        raise StorageError(error, log.directory.path) from error
    return FetchData(run, high_watermark, stable_offset, log.log_start_offset, end.offset, aborted)


def find_batches(
    segments: Segments, end: LogEnd, offset: int, limit: int, max_bytes: int, min_one_batch: bool
) -> BatchRun | None:
    """The batches from the one that holds `offset` on, all below `limit`, at most `max_bytes` of them.

    `min_one_batch`: the first one comes even if it is larger. None if there is nothing to give.
    """
    found = _find(segments, offset) if offset < limit else None
    if found is None:
        return None
    segment, start = found
    following = segments.after(segment) if segment is not end.active else None
    size = segment.log.size if following is not None else min(segment.log.size, end.active_size)
    next_offset = following.base_offset if following is not None else end.offset
    limit_position = size if limit >= next_offset else segment.position_of(limit)
    limit_position = size if limit_position is None else limit_position
    stop = _end_of_read(segment, start, limit_position, max_bytes, min_one_batch)
    if stop.position <= start:
        return None
    upper_offset = next_offset
    if stop.position < size:
        upper_offset = stop.base_offset
        if upper_offset < 0:
            upper_offset = segment.span_at(stop.position).base_offset
        segment.note_next_read(upper_offset, stop.position)
    return BatchRun(segment, start, stop.position, min(upper_offset, limit))


def _find(segments: Segments, offset: int) -> tuple[Segment, int] | None:
    """Segment and position of the first batch that holds `offset` or a later one."""
    segment = segments.floor(offset)
    while segment is not None:
        position = segment.position_of(offset)
        if position is not None:
            return segment, position
        segment = segments.after(segment)  # compaction may have emptied the end of a segment
    return None


def _end_of_read(segment: Segment, start: int, limit: int, max_bytes: int, min_one_batch: bool) -> Boundary:
    """Where to stop; the base offset there is -1 if it was not seen on the way."""
    if limit - start <= max_bytes:
        return Boundary(limit, -1)
    end = segment.floor_boundary(start, start + max_bytes)
    if end.position == start and min_one_batch:
        end = Boundary(segment.span_at(start).end_position, -1)
    return end if end.position <= limit else Boundary(limit, -1)


def aborted_between(segments: Segments, offset: int, upper_offset: int) -> tuple[AbortedTxn, ...]:
    """The aborted transactions with records in [offset, upper_offset)."""
    found = []
    for segment in segments.from_offset(offset):
        if not segment.txn_index.is_created:
            continue
        for aborted in segment.txn_index.from_offset(offset):
            if aborted.first_offset < upper_offset:
                found.append(aborted)
            # Every transaction that ends later also begins at or after this offset.
            if aborted.last_stable_offset >= upper_offset:
                return tuple(found)
    return tuple(found)
