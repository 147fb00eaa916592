"""The last offset of each key, within a fixed amount of memory.

24 bytes for each key: 16 of its hash, 8 of its offset. One buffer, reserved before the first key is added;
unused pages cost nothing. A run over few records reserves less, so that the map fits into the CPU caches.
"""

from __future__ import annotations

import contextlib
import mmap
import os

from odradek.log.cleaner.filter import kernels
from odradek.log.cleaner.filter.layout import DIGEST_WIDTH, ENTRY_BYTES, ROW_WIDTH, Row, max_records
from odradek.records.batch import Buffer
from odradek.records.errors import CorruptBatch
from odradek.records.kernels.layout import SENTENCES, Problem
from odradek.records.kernels.record_check import new_bytearray

MAX_SLOTS = 2**32 - 1
_LEAST_SLOTS = 64
_ROOMY = 2
"""Slots for each expected record, if memory allows: lookups in a half-empty map are faster."""


class RecordTable:
    """The kernels' results about records; used by one thread, and reused."""

    __slots__ = ("count", "digests", "rows")

    def __init__(self) -> None:
        self.count = 0
        self.rows = memoryview(bytearray()).cast("q")
        self.digests = memoryview(bytearray()).cast("Q")

    def make_room(self, size: int) -> None:
        """Have a row for every record that could be in `size` bytes."""
        capacity = max_records(size)
        if len(self.rows) < capacity * ROW_WIDTH:
            self.rows = memoryview(new_bytearray(capacity * ROW_WIDTH * 8)).cast("q")
            self.digests = memoryview(new_bytearray(capacity * DIGEST_WIDTH * 8)).cast("Q")

    def offset(self, number: int) -> int:
        """The offset of one record."""
        offset: int = self.rows[number * ROW_WIDTH + Row.OFFSET]
        return offset


class OffsetMap:
    """Keys to offsets; used by one thread at a time.

    `latest_offset`: every record up to it is in the map, so that the map decides what survives up to there,
    and no further.
    """

    def __init__(self, buffer_bytes: int, load_factor: float = 0.9) -> None:
        """A map of at most `buffer_bytes`, of which the share `load_factor` may be used."""
        self.capacity = min(buffer_bytes // ENTRY_BYTES, MAX_SLOTS)
        if self.capacity < 2:
            raise ValueError(f"{buffer_bytes} bytes are too few for an offset map")
        self.load_factor = load_factor
        self.clear()

    def clear(self, max_keys: int | None = None) -> None:
        """Remove all keys; no more than `max_keys` different keys will be added."""
        self.slots = self.capacity
        if max_keys is not None:
            self.slots = min(self.capacity, max(_ROOMY * max_keys, _LEAST_SLOTS))
        self.max_size = min(max(int(self.slots * self.load_factor), 1), self.slots - 1)
        self.size = 0
        self.latest_offset = -1
        self._secret = (_random_bits(), _random_bits())
        self._entries = memoryview(_fresh_memory(self.slots * ENTRY_BYTES)).cast("Q")

    def __len__(self) -> int:
        return self.size

    @property
    def utilization(self) -> float:
        """Share of the memory given to this map that is in use."""
        return self.size / self.capacity

    @property
    def is_full(self) -> bool:
        """Whether no other key can be added."""
        return self.size >= self.max_size

    def get(self, key: Buffer) -> int:
        """The last offset of a key; -1 if it is not in the map."""
        return kernels.find_offset(self._entries, self.slots, *kernels.siphash(key, *self._secret))

    # In bulk, through a table

    def digest_batches(
        self,
        table: RecordTable,
        buffer: memoryview,
        batches: memoryview,
        first: int,
        stop: int,
        verdicts: Buffer,
        now_ms: int,
    ) -> None:
        """Fill the table from batches [first, stop); CorruptBatch, placed in `buffer`, if one is damaged."""
        table.make_room(len(buffer))
        table.count, problem, position, _ = kernels.digest_batches(
            buffer, batches, first, stop, verdicts, now_ms, *self._secret, table.rows, table.digests
        )
        if problem:
            raise CorruptBatch(SENTENCES[Problem(problem)], position)

    def digest_records(
        self,
        table: RecordTable,
        records: memoryview,
        count: int,
        base_offset: int,
        last_offset: int,
        *,
        tombstones_expired: bool,
    ) -> None:
        """Fill the table from the records of one batch; CorruptBatch if they are damaged."""
        size = len(records)
        table.make_room(size)
        problem, _ = kernels.digest_records(
            records, 0, size, count, base_offset, tombstones_expired, *self._secret, table.rows, table.digests
        )
        if problem:
            raise CorruptBatch(SENTENCES[Problem(problem)])
        if count and table.offset(count - 1) > last_offset:
            raise CorruptBatch(f"a record behind the batch's last offset {last_offset}")
        table.count = count

    def put(self, table: RecordTable, start_offset: int = 0) -> bool:
        """Store the offsets of a table, from `start_offset` on; False if the map was full before its end.

        `latest_offset` then is where it stopped. Otherwise it stays: the caller knows where the batches end.
        """
        done, self.size = kernels.put_offsets(
            self._entries,
            self.slots,
            self.size,
            self.max_size,
            table.rows,
            table.digests,
            table.count,
            start_offset,
        )
        if done == table.count:
            return True
        self.latest_offset = max(self.latest_offset, table.offset(done) - 1)
        return False

    def choose_survivors(self, table: RecordTable, latest_offset: int | None = None) -> int:
        """Mark the survivors in a table; the number of records removed because they have no key.

        `latest_offset` is the map's own if not given; -1 lets everything survive.
        """
        return kernels.choose_survivors(
            self._entries,
            self.slots,
            table.rows,
            table.digests,
            table.count,
            self.latest_offset if latest_offset is None else latest_offset,
        )


def _random_bits() -> int:
    return int.from_bytes(os.urandom(8))


def _fresh_memory(size: int) -> mmap.mmap:
    """Zeroes, which mean empty; in large pages where there are such, since keys fall everywhere."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
