# cython: annotation_typing=False
"""The time index of a segment: from which offset on to look for a timestamp.

    position size field
           0    8 timestamp in ms: the greatest in the segment so far
           8    4 offset - base offset of the segment: the last offset of the batch that has it

Written together with the entries of the offset index, if the greatest timestamp has grown since; once more
when the segment is closed, so that the last entry of a closed segment is its greatest timestamp.

Compiled by Cython (time_index.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from odradek.log.files.log_file import LogFile
from odradek.log.segment.sparse_index import SparseIndex
from odradek.records.batch import Buffer

_ENTRY = struct.Struct(">qi")
ENTRY_SIZE = _ENTRY.size
_ENTRY_SIZE = ENTRY_SIZE
_TIMESTAMP, _OFFSET = 0, 1


class TimestampOffset(NamedTuple):
    """Up to and with `offset`, no record is younger than `timestamp_ms`."""

    timestamp_ms: int
    offset: int


class TimeIndex:
    """Timestamps to offsets of one segment; owned by the segment."""

    __slots__ = ("_rows", "base_offset")

    def __init__(self, file: LogFile, base_offset: int) -> None:
        self.base_offset = base_offset
        self._rows = SparseIndex(file, _ENTRY)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TimestampOffset]:
        for timestamp_ms, relative_offset in self._rows.rows():
            yield TimestampOffset(timestamp_ms, self.base_offset + relative_offset)

    @property
    def file(self) -> LogFile:
        """The file beneath."""
        return self._rows.file

    def append_if_later(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if the timestamp is above the last one's; a timestamp of -1 is none."""
        if timestamp_ms > self._rows.last_key():
            self._rows.append(timestamp_ms, offset - self.base_offset)

    def lookup_before(self, timestamp_ms: int) -> TimestampOffset | None:
        """The last entry that is older than `timestamp_ms`: what is sought comes after its offset."""
        return self._at(self._rows.search(_TIMESTAMP, timestamp_ms - 1))

    def last(self) -> TimestampOffset | None:
        """The newest entry."""
        return self._at(len(self._rows) - 1)

    def is_full(self, max_bytes: int) -> bool:
        """Whether no entry fits but the one that closing the segment adds."""
        return self._rows.count >= max_bytes // _ENTRY_SIZE - 1

    def truncate_to(self, offset: int) -> None:
        """Drop the entries with this offset or a higher one."""
        self._rows.truncate_rows(self._rows.search(_OFFSET, offset - 1 - self.base_offset) + 1)

    def replace(self, entries: Buffer) -> None:
        """Write these entries, which rise, packed as the file has them, in place of all others."""
        self._rows.replace(entries)

    def write_pending(self, at_least: int = 1) -> None:
        """Hand the entries that wait in memory to the file, if they are as many as that."""
        self._rows.write_pending(at_least)

    def check_shape(self) -> None:
        """DamagedIndex when the file does not consist of whole entries."""
        self._rows.check_length()

    def _at(self, number: int) -> TimestampOffset | None:
        if number < 0:
            return None
        timestamp_ms, relative_offset = self._rows.row(number)
        return TimestampOffset(timestamp_ms, self.base_offset + relative_offset)
