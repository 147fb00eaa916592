"""The transaction index of a segment: the aborted transactions whose marker lies in it.

    position size field
           0    2 version: 0
           2    8 producer id
          10    8 first offset of the transaction
          18    8 last offset: that of the abort marker
          26    8 last stable offset at the moment of the abort

Sorted by last offset. The file appears with the first entry; most segments have none.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from odradek.log.errors import DamagedIndex
from odradek.log.files.log_file import LogFile
from odradek.log.producers.producer_states import CompletedTxn

_ENTRY = struct.Struct(">hqqqq")
ENTRY_SIZE = _ENTRY.size
VERSION = 0
ENTRIES_PER_READ = 256


class AbortedTxn(NamedTuple):
    """One aborted transaction, as a fetch returns it to a consumer."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_txn(completed: CompletedTxn) -> AbortedTxn:
    """What is noted of a transaction that a marker has just aborted."""
    return AbortedTxn(
        completed.producer_id, completed.first_offset, completed.last_offset, completed.last_stable_offset
    )


class TxnIndex:
    """Aborted transactions of one segment; owned by the segment.

    Written through: an abort is rare, and a reader that missed one would deliver aborted records.
    """

    __slots__ = ("file", "is_created")

    def __init__(self, file: LogFile, *, is_created: bool) -> None:
        self.file = file
        self.is_created = is_created

    def __len__(self) -> int:
        return self.file.size // ENTRY_SIZE

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self._entries(0)

    def from_offset(self, offset: int) -> Iterator[AbortedTxn]:
        """The transactions that end at this offset or later, found without reading all of those before."""
        low, high = 0, len(self)
        while high - low > ENTRIES_PER_READ:
            middle = (low + high) // 2
            if _ends_from(self._read(middle, 1), offset, 0):
                high = middle
            else:
                low = middle + 1
        content = self._read(low, ENTRIES_PER_READ)
        ended = bisect_left(range(len(content) // ENTRY_SIZE), True, key=partial(_ends_from, content, offset))
        return self._entries(low + ended)

    def _entries(self, first: int) -> Iterator[AbortedTxn]:
        for number in range(first, len(self), ENTRIES_PER_READ):
            content = self._read(number, ENTRIES_PER_READ)
            for version, *fields in _ENTRY.iter_unpack(content):
                if version != VERSION:
                    raise DamagedIndex(f"{self.file.path}: version {version} is unknown")
                yield AbortedTxn(*fields)

    def _read(self, first: int, count: int) -> bytes:
        """So many entries from that one on, fewer at the end."""
        count = min(count, len(self) - first)
        return self.file.read(first * ENTRY_SIZE, count * ENTRY_SIZE)

    def append(self, aborted: AbortedTxn) -> None:
        """Add a transaction that ends after all others here."""
        if not self.is_created:
            self.file.create()
            self.is_created = True
        self.file.append(_ENTRY.pack(VERSION, *aborted))

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions that end at this offset or later."""
        if self.file.size:
            kept = sum(1 for aborted in self if aborted.last_offset < offset)
            self.file.truncate(kept * ENTRY_SIZE)

    def clear(self) -> None:
        """Drop every entry."""
        if self.file.size:
            self.file.truncate(0)

    def check(self, base_offset: int) -> None:
        """DamagedIndex when an entry cannot be; the file is short, so all of it is read."""
        if self.file.size % ENTRY_SIZE:
            raise DamagedIndex(f"{self.file.path}: {self.file.size} bytes are not a number of entries")
        previous = -1
        for aborted in self:
            if aborted.last_offset < base_offset or aborted.last_offset <= previous:
                raise DamagedIndex(f"{self.file.path}: {aborted} is out of place")
            if not 0 <= aborted.first_offset <= aborted.last_offset:
                raise DamagedIndex(f"{self.file.path}: {aborted} ends before it begins")
            previous = aborted.last_offset


def _ends_from(content: bytes, offset: int, number: int) -> bool:
    """Whether the transaction of that entry ends at this offset or later."""
    last_offset: int = _ENTRY.unpack_from(content, number * ENTRY_SIZE)[3]
    return last_offset >= offset
