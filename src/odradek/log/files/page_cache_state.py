# cython: annotation_typing=False
"""The part of a log that is known to be in the page cache, so that sending it does not block the event loop.

Two parts count: the tail that was appended recently, and the range that was checked last, or
that a thread has just read.

    log start                          recent tail        log end
        |                                  |                 |
    ----+---------[ checked run ]----------+-----------------+

Both are conservative estimates; if pages were evicted early, a read blocks.
Compiled by Cython (page_cache_state.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

RECENT_TAIL_BYTES = 8 << 20
READ_AHEAD_BYTES = 8 << 20
LOOK_AHEAD_BYTES = 32 << 20
"""Checking whether bytes are in memory is cheap, and reads nothing."""


class CachedRange:
    """Batches that are in memory, [start_offset, end_offset).

    A read of at most `max_bytes` that begins no later than at `last_offset` stays inside. `ahead_bytes` more
    than one such read were checked.
    """

    __slots__ = ("ahead_bytes", "end_offset", "last_offset", "max_bytes", "start_offset")

    def __init__(
        self, start_offset: int, last_offset: int, end_offset: int, max_bytes: int, ahead_bytes: int
    ) -> None:
        self.start_offset = start_offset
        self.last_offset = last_offset
        self.end_offset = end_offset
        self.max_bytes = max_bytes
        self.ahead_bytes = ahead_bytes

    def covers(self, offset: int, max_bytes: int) -> bool:
        """Whether a read lies completely in this range."""
        return self.start_offset <= offset <= self.last_offset and max_bytes <= self.max_bytes

    def is_followed_by(self, offset: int) -> bool:
        """Whether a read at `offset` looks like the next one of the same reader."""
        return self.start_offset < offset <= self.end_offset


class LogEndMark:
    """The end of a log at one moment: its active segment, how large that was, and the offset."""

    __slots__ = ("offset", "segment_base_offset", "segment_size")

    def __init__(self, segment_base_offset: int, segment_size: int, offset: int) -> None:
        self.segment_base_offset = segment_base_offset
        self.segment_size = segment_size
        self.offset = offset


NOT_LOOKED_YET = LogEndMark(-1, 0, 0)


class PageCacheState:
    """Used by the owner of one log; only `run` is assigned, by threads that have read.

    The tail is updated by reads, never by appends.
    """

    __slots__ = ("_mark", "_tail_offset", "run")

    def __init__(self) -> None:
        self._tail_offset = 0
        self._mark = NOT_LOOKED_YET
        self.run: CachedRange | None = None

    def covers(self, offset: int, max_bytes: int, end: LogEndMark) -> bool:
        """Whether a read needs no disk access; `end` is the current log end."""
        mark = self._mark
        is_same_segment = end.segment_base_offset == mark.segment_base_offset
        if not is_same_segment or not 0 <= end.segment_size - mark.segment_size <= RECENT_TAIL_BYTES:
            self._move_mark(end)
        if offset >= self._tail_offset:
            return True
        run = self.run
        return run is not None and run.covers(offset, max_bytes)

    def _move_mark(self, end: LogEndMark) -> None:
        """Start the recent tail at the last mark, if that is recent."""
        mark = self._mark
        grown_bytes = end.segment_size - mark.segment_size
        is_recent = (
            end.segment_base_offset == mark.segment_base_offset and 0 <= grown_bytes <= 2 * RECENT_TAIL_BYTES
        )
        self._tail_offset = mark.offset if is_recent else end.offset
        self._mark = end
