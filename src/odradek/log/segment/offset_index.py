# cython: annotation_typing=False
"""The offset index of a segment: where in the log file to start looking for an offset.

    position size field
           0    4 offset - base offset of the segment
           4    4 position in the log file of the batch that ends with this offset

One entry per `index.interval.bytes` of log. Kafka writes one per append, so there the offset may be the
last of several batches of which the first begins at the position.

Compiled by Cython (offset_index.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.log.segment.sparse_index import SparseIndex
from odradek.records.batch import Buffer

_ENTRY = struct.Struct(">ii")
ENTRY_SIZE = _ENTRY.size
_ENTRY_SIZE = ENTRY_SIZE
_OFFSET, _POSITION = 0, 1


class OffsetPosition:
    """A batch that ends with `offset` (or a run of batches) begins at `position`."""

    __slots__ = ("offset", "position")

    def __init__(self, offset: int, position: int) -> None:
        self.offset = offset
        self.position = position

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, OffsetPosition)
            and self.offset == other.offset
            and self.position == other.position
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OffsetPosition(offset={self.offset}, position={self.position})"


class OffsetIndex:
    """Offsets to positions of one segment; owned by the segment."""

    __slots__ = ("_rows", "base_offset")

    def __init__(self, file: LogFile, base_offset: int) -> None:
        self.base_offset = base_offset
        self._rows = SparseIndex(file, _ENTRY)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[OffsetPosition]:
        for relative_offset, position in self._rows.rows():
            yield OffsetPosition(self.base_offset + relative_offset, position)

    @property
    def file(self) -> LogFile:
        """The file beneath."""
        return self._rows.file

    def append(self, offset: int, position: int) -> None:
        """Add an entry; both numbers are above those of the last one."""
        self._rows.append(offset - self.base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition | None:
        """The last entry whose offset is <= `offset`."""
        return self._at(self._rows.search(_OFFSET, offset - self.base_offset))

    def lookup_position(self, position: int) -> OffsetPosition | None:
        """The last entry whose position is <= `position`."""
        return self._at(self._rows.search(_POSITION, position))

    def last(self) -> OffsetPosition | None:
        """The newest entry."""
        return self._at(len(self._rows) - 1)

    def is_full(self, max_bytes: int) -> bool:
        """Whether no entry fits any more."""
        return self._rows.count >= max_bytes // _ENTRY_SIZE

    def truncate_to(self, offset: int) -> None:
        """Drop the entries with this offset or a higher one."""
        self._rows.truncate_rows(self._rows.search(_OFFSET, offset - 1 - self.base_offset) + 1)

    def replace(self, entries: Buffer) -> None:
        """Write these entries, which rise, packed as the file has them, in place of all others."""
        self._rows.replace(entries)

    def write_pending(self, at_least: int = 1) -> None:
        """Hand the entries that wait in memory to the file, if they are as many as that."""
        self._rows.write_pending(at_least)

    def check_shape(self, log_size: int) -> None:
        """DamagedIndex when length or last entry cannot be; what lies between is checked when it is used."""
        self._rows.check_length()
        last = self.last()
        if last is None:
            return
        if last.offset < self.base_offset or not 0 <= last.position < max(log_size, 1):
            raise DamagedIndex(f"{self.file.path}: {last} is outside of a log of {log_size} bytes")

    def _at(self, number: int) -> OffsetPosition | None:
        if number < 0:
            return None
        relative_offset, position = self._rows.row(number)
        return OffsetPosition(self.base_offset + relative_offset, position)
