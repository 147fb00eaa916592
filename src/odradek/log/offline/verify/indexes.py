"""Judges the offset index and the time index of a segment by its batches, walking both side by side."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator

from odradek.log.segment import offset_index, time_index
from odradek.records.batch import BatchHeader

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_BLOCK_ENTRIES = 4096

Row = tuple[int, int, int]  # position in the index file, then the two columns
Problem = tuple[int | None, str]


class IndexFile:
    """The entries of an index file in order; what is wrong with the file itself is kept for the end."""

    def __init__(self, path: str, entry: struct.Struct, *, may_have_zeroes: bool) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self._entry = entry
        size = os.stat(path).st_size
        self._size = size - size % entry.size
        if size > self._size:
            self.problems.append((self._size, f"{size} bytes are not a number of entries"))
        if may_have_zeroes:
            self._size = _size_without_zeroes(path, self._size, entry.size)

    def rows(self) -> Iterator[Row]:
        """Every entry that was written; both columns must rise."""
        before: Row | None = None
        for row in self._read():
            if min(row[1:]) < 0 or (before is not None and (row[1] <= before[1] or row[2] <= before[2])):
                self.problems.append((row[0], f"entry {row[1:]} after {before[1:] if before else 'none'}"))
                return
            before = row
            yield row

    def _read(self) -> Iterator[Row]:
        size = self._entry.size
        with open(self.path, "rb") as file:
            position = 0
            while position + size <= self._size:
                block = file.read(min(_BLOCK_ENTRIES * size, self._size - position) // size * size)
                for first, second in self._entry.iter_unpack(block):
                    yield position, first, second
                    position += size


def _size_without_zeroes(path: str, size: int, entry_size: int) -> int:
    """Kafka makes the index of its active segment as large as it may become; the rest of the file is zero."""
    with open(path, "rb") as file:
        while size >= entry_size:
            start = max(0, size - _BLOCK_ENTRIES * entry_size)
            file.seek(start)
            used = len(file.read(size - start).rstrip(b"\0"))
            if used or start == 0:
                # Zero bytes may end an entry too; the very first entry may be all zero but for its position.
                return start + -(-used // entry_size) * entry_size
            size = start
    return size


class OffsetIndexCheck:
    """Each entry names the last offset of the batch that begins at its position, or of a later one."""

    def __init__(self, path: str, base_offset: int, *, is_active: bool) -> None:
        self.file = IndexFile(path, _OFFSET_ENTRY, may_have_zeroes=is_active)
        self._base_offset = base_offset
        self._rows = self.file.rows()
        self._next = next(self._rows, None)
        self._open: Row | None = None  # an entry whose offset has not come yet
        assert _OFFSET_ENTRY.size == offset_index.ENTRY_SIZE

    def add_batch(self, position: int, header: BatchHeader) -> None:
        """The next batch of the segment."""
        while self._next is not None and self._next[2] <= position:
            self._close_open()
            row, self._next = self._next, next(self._rows, None)
            if row[2] != position:
                self.file.problems.append((row[0], f"no batch begins at byte {row[2]}"))
                continue
            self._open = row
        if self._open is None:
            return
        wanted = self._base_offset + self._open[1]
        if header.last_offset == wanted:
            self._open = None
        elif header.last_offset > wanted:
            self._close_open()

    def finish(self) -> list[Problem]:
        """What is wrong, once all batches were added."""
        self._close_open()
        if self._next is not None:
            self.file.problems.append((self._next[0], f"no batch begins at byte {self._next[2]}"))
        return self.file.problems

    def _close_open(self) -> None:
        if self._open is not None:
            offset, position = self._base_offset + self._open[1], self._open[2]
            self.file.problems.append(
                (self._open[0], f"offset {offset} does not end a batch at byte {position}")
            )
            self._open = None


class TimeIndexCheck:
    """Each entry names a batch, and the greatest timestamp up to it, which that batch has first.

    A batch that compaction emptied keeps the time of records that are gone. Cleaners leave it out, Kafka's
    recovery counts it: an index may have been written by either.
    """

    def __init__(
        self,
        path: str,
        base_offset: int,
        *,
        is_active: bool,
        first_offset_with: Callable[[BatchHeader, int, int], int | None],
    ) -> None:
        """`first_offset_with` reads a batch: the first of its records that has a timestamp, at a position."""
        self.file = IndexFile(path, _TIME_ENTRY, may_have_zeroes=is_active)
        self._base_offset = base_offset
        self._is_active = is_active
        self._first_offset_with = first_offset_with
        self._rows = self.file.rows()
        self._next = next(self._rows, None)
        self._greatest_ms = -1
        self._greatest_of_emptied_ms = -1
        self._last_entry_ms = -1
        assert _TIME_ENTRY.size == time_index.ENTRY_SIZE

    def add_batch(self, position: int, header: BatchHeader) -> None:
        """The next batch of the segment."""
        while self._next is not None and self._base_offset + self._next[2] <= header.last_offset:
            row, self._next = self._next, next(self._rows, None)
            self._check_batch(row, position, header)
        if header.record_count:
            self._greatest_ms = max(self._greatest_ms, header.max_timestamp_ms)
        else:
            self._greatest_of_emptied_ms = max(self._greatest_of_emptied_ms, header.max_timestamp_ms)

    def _check_batch(self, row: Row, position: int, header: BatchHeader) -> None:
        at, timestamp_ms, offset = row[0], row[1], self._base_offset + row[2]
        self._last_entry_ms = timestamp_ms
        if timestamp_ms != header.max_timestamp_ms or self._greatest_ms >= timestamp_ms:
            self.file.problems.append(
                (
                    at,
                    f"timestamp {timestamp_ms} is not the greatest up to offset {offset}, or not first there",
                )
            )
        elif offset != header.last_offset and offset != self._first_offset_with(
            header, position, timestamp_ms
        ):
            # Some versions of Kafka name the record itself instead of the end of its batch.
            self.file.problems.append(
                (at, f"offset {offset} neither ends a batch nor has timestamp {timestamp_ms} first")
            )

    def finish(self) -> list[Problem]:
        """What is wrong, once all batches were added."""
        if self._next is not None:
            offset = self._base_offset + self._next[2]
            self.file.problems.append((self._next[0], f"offset {offset} is not in the segment"))
        elif (
            not self._is_active
            and not self.file.problems
            and self._last_entry_ms
            not in (self._greatest_ms, max(self._greatest_ms, self._greatest_of_emptied_ms))
        ):
            self.file.problems.append(
                (None, f"the last entry has timestamp {self._last_entry_ms}, the segment {self._greatest_ms}")
            )
        return self.file.problems
