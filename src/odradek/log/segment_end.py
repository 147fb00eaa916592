# cython: annotation_typing=False
"""The end of a segment, where batches are added: one write, and what must be noted with each batch.

Compiled by Cython (segment_end.pxd has the C types), or interpreted as is. A base class of the segment, so
that nothing lies between an append and the file.
"""

from __future__ import annotations

from odradek.log.files import Buffer, LogFile
from odradek.log.offset_index import OffsetIndex
from odradek.log.sparse_index import PENDING_LIMIT
from odradek.log.time_index import TimeIndex, TimestampOffset

_BOUNDARIES_KEPT = 16


class SegmentEnd:
    """What an append reads and changes; everything else of a segment is in the class that inherits."""

    base_offset: int
    index_interval_bytes: int
    log: LogFile
    offset_index: OffsetIndex
    time_index: TimeIndex
    _bytes_since_index: int
    _first_timestamp_ms: int | None
    _max_timestamp: TimestampOffset | None
    _boundaries: dict[int, int]
    _pending_entries: int
    _checked_index_bytes: int
    _is_index_full: bool

    def __init__(
        self,
        base_offset: int,
        log: LogFile,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        index_interval_bytes: int,
    ) -> None:
        self.base_offset = base_offset
        self.log = log
        self.offset_index = offset_index
        self.time_index = time_index
        self.index_interval_bytes = index_interval_bytes
        self._bytes_since_index = 0
        self._first_timestamp_ms = None
        self._max_timestamp = None
        # Where recent batches begin, by base offset: what consumers at the tail ask for next.
        self._boundaries = {}
        self._pending_entries = 0
        # Whether the indexes are full changes only with an entry; this is the limit it was last asked for.
        self._checked_index_bytes = -1
        self._is_index_full = False

    def append(self, payload: Buffer, base_offset: int, last_offset: int, max_timestamp_ms: int) -> int:
        """Write one batch and return the file position where it begins."""
        position = self.log.append(payload)
        self.note(position, len(payload), base_offset, last_offset, max_timestamp_ms)
        return position

    def note(
        self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp_ms: int
    ) -> None:
        """Bring the indexes up to a batch that is in the file."""
        if position == 0:
            self._first_timestamp_ms = max_timestamp_ms
        greatest = self.max_timestamp() if self._max_timestamp is None else self._max_timestamp
        greatest_ms = greatest[0]
        if max_timestamp_ms > greatest_ms:
            # What `TimestampOffset(...)` does, without a call of Python code for each batch.
            self._max_timestamp = tuple.__new__(TimestampOffset, (max_timestamp_ms, last_offset))
        # Sparse on purpose: a lookup lands at most one interval early and scans forward.
        if self._bytes_since_index > self.index_interval_bytes:
            self._add_entries(last_offset, position)
        self._bytes_since_index += size
        boundaries = self._boundaries
        boundaries[base_offset] = position
        if len(boundaries) > _BOUNDARIES_KEPT:
            boundaries.pop(next(iter(boundaries)), None)

    def _add_entries(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset, position)
        timestamp_ms, offset = self.max_timestamp()
        self.time_index.append_if_later(timestamp_ms, offset)
        self._bytes_since_index = 0
        self._pending_entries += 1
        self._checked_index_bytes = -1

    def max_timestamp(self) -> TimestampOffset:
        """The greatest timestamp and the last offset of the batch that has it; (-1, base offset) without."""
        if self._max_timestamp is None:
            self._max_timestamp = self._find_max_timestamp()
        return self._max_timestamp

    def _find_max_timestamp(self) -> TimestampOffset:
        """Look into the files, which is the heir's."""
        raise NotImplementedError

    def wants_room(self, max_index_bytes: int) -> bool:
        """Whether entries must be written out, or the indexes are full, so that an append has more to do."""
        return self._pending_entries >= PENDING_LIMIT or self.is_index_full(max_index_bytes)

    def is_index_full(self, max_index_bytes: int) -> bool:
        """Whether one of the indexes takes no more entries."""
        if self._checked_index_bytes != max_index_bytes:
            self._is_index_full = self.offset_index.is_full(max_index_bytes) or self.time_index.is_full(
                max_index_bytes
            )
            self._checked_index_bytes = max_index_bytes
        return self._is_index_full
