# cython: annotation_typing=False
"""The ordered set of a partition's segments.

Compiled by Cython (segments.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from odradek.log.segment.segment import Segment


class Segments:
    """Segments by base offset, oldest first; the last one is active.

    Changed only by the owner of the log, each time by one assignment of a new pair of lists, so that other
    threads always see a whole set.
    """

    __slots__ = ("_sorted", "active")

    active: Segment
    """The one that is appended to."""

    def __init__(self, segments: Iterable[Segment] = ()) -> None:
        self._sorted: tuple[list[int], list[Segment]] = ([], [])
        self._assign(segments)

    def _assign(self, segments: Iterable[Segment]) -> None:
        ordered = sorted(segments, key=lambda segment: segment.base_offset)
        self._sorted = ([segment.base_offset for segment in ordered], ordered)
        if ordered:
            self.active = ordered[-1]

    def __len__(self) -> int:
        return len(self._sorted[1])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._sorted[1])

    @property
    def first(self) -> Segment:
        """The oldest one."""
        return self._sorted[1][0]

    @property
    def size_in_bytes(self) -> int:
        """Bytes of log in all of them."""
        return sum(segment.size for segment in self)

    def add(self, segment: Segment) -> None:
        """Put a segment in its place; one with the same base offset is replaced."""
        others = (one for one in self if one.base_offset != segment.base_offset)
        self._assign([*others, segment])

    def replace(self, old: Iterable[Segment], new: Iterable[Segment]) -> None:
        """Take `old` out and put `new` in, at once: a reader sees one or the other."""
        gone = {id(segment) for segment in old}
        self._assign([*(one for one in self if id(one) not in gone), *new])

    def remove(self, segments: Iterable[Segment]) -> None:
        """Take these out."""
        self.replace(segments, ())

    def floor(self, offset: int) -> Segment | None:
        """The segment that would hold `offset`: the last one that begins at or before it."""
        base_offsets, segments = self._sorted
        at = bisect_right(base_offsets, offset) - 1
        return segments[at] if at >= 0 else None

    def after(self, segment: Segment) -> Segment | None:
        """The next younger one."""
        base_offsets, segments = self._sorted
        at = bisect_right(base_offsets, segment.base_offset)
        return segments[at] if at < len(segments) else None

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that would hold `offset` and all younger ones; all, if it is older than the first."""
        base_offsets, segments = self._sorted
        return segments[max(bisect_right(base_offsets, offset) - 1, 0) :]

    def begun_at_or_after(self, offset: int) -> list[Segment]:
        """The segments with a base offset of at least `offset`."""
        base_offsets, segments = self._sorted
        return segments[bisect_left(base_offsets, offset) :]
