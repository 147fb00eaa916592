"""The numbers that the kernels share with their callers: what can be wrong, and the columns of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

HEADER_SIZE = 61
"""Bytes of a batch header; batch.py has its table."""
LOG_OVERHEAD = 12
MAGIC = 2
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21


class Problem(IntEnum):
    """What a kernel found wrong with the records of a batch."""

    NONE = 0
    RECORD_LENGTH = 1
    TIMESTAMP_DELTA = 2
    OFFSET_DELTA = 3
    KEY = 4
    VALUE = 5
    HEADER_COUNT = 6
    HEADER_KEY = 7
    HEADER_VALUE = 8
    NOT_FILLED = 9
    TOO_FEW = 10
    BYTES_LEFT = 11
    WRONG_OFFSET = 12
    NO_KEY = 13


SENTENCES = {
    Problem.RECORD_LENGTH: "the record's length is no varint or passes the end of the batch",
    Problem.TIMESTAMP_DELTA: "the timestamp delta is no varint of 64 bits",
    Problem.OFFSET_DELTA: "the offset delta is no varint of 32 bits",
    Problem.KEY: "the key's length is no varint or passes the end of the record",
    Problem.VALUE: "the value's length is no varint or passes the end of the record",
    Problem.HEADER_COUNT: "the number of headers is no varint or negative",
    Problem.HEADER_KEY: "a header key is null, or its length is no varint or passes the end of the record",
    Problem.HEADER_VALUE: "a header value's length is no varint or passes the end of the record",
    Problem.NOT_FILLED: "the fields end before the record's length says",
    Problem.TOO_FEW: "the batch ends before it has as many records as its header counts",
    Problem.BYTES_LEFT: "bytes are left after as many records as the header counts",
    Problem.WRONG_OFFSET: "the offset delta is out of order",
    Problem.NO_KEY: "a compacted topic needs a key in every record",
}


class Column(IntEnum):
    """Where a record table keeps what: one row of `ROW_WIDTH` int64 for each record."""

    RECORD_POSITION = 0
    OFFSET_DELTA = 1
    TIMESTAMP_DELTA = 2
    KEY_POSITION = 3
    KEY_LENGTH = 4
    VALUE_POSITION = 5
    VALUE_LENGTH = 6
    HEADERS_POSITION = 7
    HEADER_COUNT = 8


ROW_WIDTH = len(Column)

SMALLEST_RECORD = 7
"""Bytes of a record without key, value and headers: no count above `bytes // 7` can be true."""

SMALLEST_HEADER = 2
"""Bytes of a record's header with an empty key and no value."""


class BatchColumn(IntEnum):
    """Where a batch table keeps what: one row of `BATCH_ROW_WIDTH` int64 for each batch header."""

    POSITION = 0
    BASE_OFFSET = 1
    SIZE_IN_BYTES = 2
    PARTITION_LEADER_EPOCH = 3
    CRC = 4
    ATTRIBUTES = 5
    LAST_OFFSET = 6
    BASE_TIMESTAMP_MS = 7
    MAX_TIMESTAMP_MS = 8
    PRODUCER_ID = 9
    PRODUCER_EPOCH = 10
    BASE_SEQUENCE = 11
    RECORD_COUNT = 12


BATCH_ROW_WIDTH = len(BatchColumn)


class Stop(IntEnum):
    """Why a walk over batch headers ended."""

    AT_END = 0
    TABLE_FULL = 1
    TRUNCATED = 2
    BAD_LENGTH = 3
    BAD_MAGIC = 4


@dataclass(slots=True)
class BatchScan:
    """What a walk over batch headers found: `count` rows, and why and where it stopped."""

    table: memoryview
    count: int
    stop: Stop
    position: int

    def column(self, column: BatchColumn) -> memoryview:
        """One field of all batches, in the order of the log."""
        return self.table[column : self.count * BATCH_ROW_WIDTH : BATCH_ROW_WIDTH]

    def field(self, index: int, column: BatchColumn) -> int:
        """One field of one batch."""
        number: int = self.table[index * BATCH_ROW_WIDTH + column]
        return number
