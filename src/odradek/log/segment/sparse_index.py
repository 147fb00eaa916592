# cython: annotation_typing=False
"""A file of fixed-size entries, sorted by both their columns, that grows at its end: what both indexes are.

Entries are found by reading the file, not by mapping it: ten thousand partitions would otherwise hold
twenty thousand maps. The newest entries wait in memory, where nearly every lookup ends, and are written a
block at a time. That is safe because a file that is behind its log belongs to a segment above the recovery
point, which is scanned, and its indexes rebuilt, after an unclean stop; pending entries are written before
that point moves.

Unlike Kafka we do not preallocate the file of an active segment: a trimmed file is what Kafka itself leaves
behind at every clean stop, so it accepts ours. A preallocated one, left by a Kafka that was killed, is
rebuilt.

Compiled by Cython (sparse_index.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator
from itertools import chain

import cython

from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.records.batch import Buffer

if cython.compiled:
    from cython.cimports.odradek.common.int64_arrays import append_number, count_up_to
else:
    from odradek.common.int64_arrays import append_number, count_up_to

PENDING_LIMIT = 512
_BLOCK_ENTRIES = 512
_TWO_INT32 = ">ii"

Entry = tuple[int, int]
Block = tuple[int, "array[int]", "array[int]"]
"""Entries side by side: the number of the first, and the two columns."""


class SparseIndex:
    """Rows of two ascending integers.

    One writer, the owner of the segment; any thread may search, since `_pending` is replaced as a whole.
    """

    __slots__ = ("_blocks_read", "_entry", "_is_last_known", "_last_key", "_pending", "count", "file")

    def __init__(self, file: LogFile, entry: struct.Struct) -> None:
        self.file = file
        self._entry = entry
        self._pending: Block = (file.size // entry.size, array("q"), array("q"))
        self._is_last_known = False  # until it was asked for, or appended
        self._last_key = -1
        # The parts of the file that were searched last, where a reader's next search most often ends too;
        # two, since a reader also looks ahead.
        self._blocks_read: tuple[Block, ...] = ()
        self.count = self._pending[0]

    def __len__(self) -> int:
        return self.count

    @property
    def size_in_bytes(self) -> int:
        """What the file will have when nothing is pending."""
        return len(self) * self._entry.size

    def append(self, key: int, value: int) -> None:
        """Add a row, larger in both columns than the last one."""
        _, keys, values = self._pending
        append_number(values, value)
        append_number(keys, key)  # last, because searching threads believe the keys
        self._last_key = key
        self._is_last_known = True
        self.count += 1

    def row(self, number: int) -> Entry:
        """One entry by its place."""
        written, keys, values = self._pending
        if number >= written:
            return keys[number - written], values[number - written]
        for start, known_keys, known_values in self._blocks_read:
            if 0 <= number - start < len(known_keys):
                return known_keys[number - start], known_values[number - start]
        return self._rows(number, 1)[0]

    def rows(self) -> Iterator[Entry]:
        """Every entry, in order."""
        written, keys, values = self._pending
        for start in range(0, written, _BLOCK_ENTRIES):
            yield from self._rows(start, min(_BLOCK_ENTRIES, written - start))
        yield from zip(keys, values, strict=False)

    def last_key(self) -> int:
        """The first column of the newest entry; -1 without any."""
        if not self._is_last_known:
            self._last_key = self.row(self.count - 1)[0] if self.count else -1
            self._is_last_known = True
        return self._last_key

    def search(self, column: int, target: int) -> int:
        """Number of the last entry whose `column` is <= target; -1 when all are greater."""
        written, keys, values = self._pending
        pending = values if column else keys
        if pending and pending[0] <= target:
            found: int = count_up_to(pending, target)
            return written + found - 1
        return self._search_file(column, target, written)

    def _search_file(self, column: int, target: int, count: int) -> int:
        found: int
        for known in self._blocks_read:
            found = _search_block(known, column, target, count)
            if found >= 0:
                return found
        for known in self._blocks_read:
            if _column(known, column)[0] <= target:
                # A reader that goes on comes to the next block.
                known = self._read_block(known[0] + len(known[1]) - 1, count)
                found = _search_block(known, column, target, count)
                if found >= 0:
                    return found
                break
        low, high = 0, count  # everything before low is <= target, everything from high on is greater
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self._rows(middle, 1)[0][column] <= target:
                low = middle
            else:
                high = middle
        if low == count:
            return -1
        # Entries beyond `high` are read with it, for the next lookup.
        known = self._read_block(low, count)
        found = count_up_to(_column(known, column), target)
        return low + found - 1

    def _read_block(self, start: int, count: int) -> Block:
        """The entries from `start` on, of which there is one at least; kept for the next search."""
        size = min(count - start, _BLOCK_ENTRIES)
        entries = self._block(start, size)
        if self._entry.format == _TWO_INT32:
            # All numbers at once, without an object for each.
            numbers = array("i", entries)
            if sys.byteorder == "little":
                numbers.byteswap()
            block = (start, numbers[0::2], numbers[1::2])
        else:
            unpacked = struct.unpack(">" + self._entry.format[1:] * size, entries)
            block = (start, array("q", unpacked[0::2]), array("q", unpacked[1::2]))
        self._blocks_read = (block, *self._blocks_read[:1])
        return block

    def truncate_rows(self, count: int) -> None:
        """Keep the first `count` entries."""
        self.write_pending()
        if count < len(self):
            self.file.truncate(count * self._entry.size)
            self._pending = (count, array("q"), array("q"))
            self._is_last_known = False
            self._blocks_read = ()
            self.count = count

    def replace(self, entries: Buffer) -> None:
        """Write the whole file anew, from entries that rise in both columns, packed as they are there."""
        self.file.truncate(0)
        self.file.append(entries)
        self.count = self.file.size // self._entry.size
        self._pending = (self.count, array("q"), array("q"))
        self._is_last_known = False
        self._blocks_read = ()

    def write_pending(self, at_least: int = 1) -> None:
        """Hand what is pending to the file, if it is as many entries as that."""
        written, keys, values = self._pending
        if len(keys) < at_least:
            return
        numbers = chain.from_iterable(zip(keys, values, strict=True))
        self.file.append(struct.pack(">" + self._entry.format[1:] * len(keys), *numbers))
        self._pending = (written + len(keys), array("q"), array("q"))

    def check_length(self) -> None:
        """DamagedIndex when the file does not consist of whole entries."""
        if self.file.size % self._entry.size:
            raise DamagedIndex(f"{self.file.path}: {self.file.size} bytes are not a number of entries")

    def _rows(self, start: int, count: int) -> list[Entry]:
        return list(self._entry.iter_unpack(self._block(start, count)))

    def _block(self, start: int, count: int) -> bytes:
        size = self._entry.size
        block = self.file.read(start * size, count * size)
        if len(block) != count * size:
            raise DamagedIndex(f"{self.file.path}: entry {start} is missing")
        return block


def _search_block(block: Block, column: int, target: int, count: int) -> int:
    """Number of the last entry <= target, if it is surely in this block of a file of `count`; else -1."""
    start, numbers = block[0], _column(block, column)
    size = len(numbers)
    if numbers[0] <= target and (target < numbers[size - 1] or start + size == count):
        found: int = count_up_to(numbers, target)
        return start + found - 1
    return -1


def _column(block: Block, column: int) -> array[int]:
    return block[2] if column else block[1]
