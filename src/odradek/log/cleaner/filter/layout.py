"""The numbers that kernels.py shares with its callers: the columns of its tables, the verdicts on batches."""

from __future__ import annotations

from enum import IntEnum, IntFlag

from odradek.records.kernels.layout import SMALLEST_RECORD


class Row(IntEnum):
    """The columns of a table of records: one row of `ROW_WIDTH` int64 per record."""

    START = 0
    REST = 1  # where the bytes after the timestamp delta begin
    END = 2
    OFFSET = 3
    TIMESTAMP_DELTA = 4
    KIND = 5
    SURVIVES = 6


ROW_WIDTH = 8
"""One more than there are columns: a row is then as long as a cache line."""

DIGEST_WIDTH = 2
"""The 16-byte hash of a key is two uint64."""

ENTRY_WIDTH = 3
"""An entry of the offset map is three uint64: two of the hash, then the offset plus one (0: empty)."""

ENTRY_BYTES = 8 * ENTRY_WIDTH


class RecordKind(IntEnum):
    """The kinds of records that compaction distinguishes."""

    NO_KEY = 0
    VALUE = 1
    TOMBSTONE = 2
    EXPIRED_TOMBSTONE = 3


class Verdict(IntFlag):
    """What is known of a batch before its records are read."""

    FILTER = 0  # uncompressed: processed together with others
    DISCARD = 1  # aborted: none of its records survives
    ALONE = 2  # compressed or a marker: processed by itself
    OF_EMPTY_TXN = 4  # a marker whose transaction has no batches left


class Counter(IntEnum):
    """What `write_survivors` counts."""

    BATCHES_CHANGED = 0
    RECORDS_READ = 1
    RECORDS_KEPT = 2


def max_records(size: int) -> int:
    """The largest possible number of records in `size` bytes."""
    return size // SMALLEST_RECORD + 1
