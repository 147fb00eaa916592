# cython: annotation_typing=False
"""The end of a segment, where batches are added: one write, and what must be noted with each batch.

Compiled by Cython (segment_appender.pxd has the C types), or interpreted as is. A base class of the segment,
so that nothing lies between an append and the file.
"""

from __future__ import annotations

from array import array

import cython

from odradek.log.files.file_system import Buffer
from odradek.log.files.log_file import LogFile
from odradek.log.segment.offset_index import OffsetIndex
from odradek.log.segment.sparse_index import PENDING_LIMIT
from odradek.log.segment.time_index import TimeIndex, TimestampOffset

if cython.compiled:
    from cython.cimports.odradek.common.int64_arrays import numbers_of
else:
    from odradek.common.int64_arrays import numbers_of

_BOUNDARIES_KEPT = 16
_NO_BOUNDARIES = array("q", [-1, -1] * _BOUNDARIES_KEPT)


class SegmentAppender:
    """What an append reads and changes; everything else of a segment is in the class that inherits."""

    base_offset: int
    index_interval_bytes: int
    log: LogFile
    offset_index: OffsetIndex
    time_index: TimeIndex
    _bytes_since_index: int
    _first_timestamp_ms: int | None
    _is_max_timestamp_known: bool
    _max_timestamp_ms: int
    _max_timestamp_offset: int
    _boundaries: array[int] | None
    _next_boundary: int
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
        self._is_max_timestamp_known = False
        self._max_timestamp_ms = self._max_timestamp_offset = -1
        # Base offset and position of recent batches, alternating: what consumers at the tail ask for next.
        self._boundaries = None
        self._next_boundary = 0
        self._pending_entries = 0
        # Whether the indexes are full changes only with an entry; this is the limit it was last asked for.
        self._checked_index_bytes = -1
        self._is_index_full = False

    @property
    def size(self) -> int:
        """Bytes of log."""
        return self.log.size

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
        if not self._is_max_timestamp_known:
            self.max_timestamp()
        if max_timestamp_ms > self._max_timestamp_ms:
            self._max_timestamp_ms = max_timestamp_ms
            self._max_timestamp_offset = last_offset
        # Sparse on purpose: a lookup lands at most one interval early and scans forward.
        if self._bytes_since_index > self.index_interval_bytes:
            self._add_entries(last_offset, position)
        self._bytes_since_index += size
        self._note_boundary(base_offset, position)

    def _note_boundary(self, base_offset: int, position: int) -> None:
        if self._boundaries is None:
            self._boundaries = _NO_BOUNDARIES[:]
        boundaries, at = numbers_of(self._boundaries), self._next_boundary
        # Searching threads see the offset of one batch with the position of another never: none in between.
        boundaries[at] = -1
        boundaries[at + 1] = position
        boundaries[at] = base_offset
        self._next_boundary = at + 2 if at + 2 < 2 * _BOUNDARIES_KEPT else 0

    def known_position(self, base_offset: int) -> int:
        """Where the batch with this base offset begins, if it is a recent one; else -1."""
        if self._boundaries is None:
            return -1
        boundaries = numbers_of(self._boundaries)
        for at in range(0, 2 * _BOUNDARIES_KEPT, 2):
            if boundaries[at] == base_offset:
                position = boundaries[at + 1]
                return position if boundaries[at] == base_offset else -1
        return -1

    def forget_boundaries(self) -> None:
        """Batches may begin elsewhere now."""
        self._boundaries = None
        self._next_boundary = 0

    def _add_entries(self, last_offset: int, position: int) -> None:
        self.offset_index.append(last_offset, position)
        self.time_index.append_if_later(self._max_timestamp_ms, self._max_timestamp_offset)
        self._bytes_since_index = 0
        self._pending_entries += 1
        self._checked_index_bytes = -1

    def max_timestamp(self) -> TimestampOffset:
        """The greatest timestamp and the last offset of the batch that has it; (-1, base offset) without.

        Other threads than the owner's may rely on the timestamp alone.
        """
        if not self._is_max_timestamp_known:
            found = self._find_max_timestamp()
            if not self._is_max_timestamp_known:  # the owner may have been here meanwhile, and knows better
                self.set_max_timestamp(found)
        return TimestampOffset(self._max_timestamp_ms, self._max_timestamp_offset)

    def set_max_timestamp(self, greatest: TimestampOffset | None) -> None:
        """What `max_timestamp` is from now on; None if it must be looked for."""
        if greatest is not None:
            self._max_timestamp_ms, self._max_timestamp_offset = greatest
        self._is_max_timestamp_known = greatest is not None

    def _find_max_timestamp(self) -> TimestampOffset:
        """Read the files; subclasses define it."""
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
