"""The records of one batch: decompressed, as Python objects, as columns, or indexed where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from odradek.records.batch import HEADER_SIZE, BatchHeader, Buffer, TimestampType, read_header
from odradek.records.compression import Codec, decompress
from odradek.records.errors import (
    CorruptBatch,
    DecompressedTooLarge,
    InvalidRecord,
    TruncatedBatch,
    UnsupportedCodec,
)
from odradek.records.kernels.column_sinks import RecordsSink
from odradek.records.kernels.layout import ROW_WIDTH, SENTENCES, SMALLEST_RECORD, Column, Problem
from odradek.records.kernels.record_check import new_bytearray
from odradek.records.kernels.record_index import index_records
from odradek.records.kernels.record_objects import Record
from odradek.records.kernels.record_objects import read_records as _read_records

__all__ = [
    "PlainRecords",
    "Record",
    "RecordIndex",
    "append_columns",
    "index_batch",
    "plain_records",
    "read_records",
]

FROM_THE_START = -(2**63)
"""Below every offset."""


class PlainRecords(NamedTuple):
    """The bytes of a batch's records without compression: `buffer[start:end]`."""

    buffer: Buffer
    start: int
    end: int
    batch_position: int
    is_compressed: bool

    def count(self, header: BatchHeader) -> int:
        """The number of records that the header gives; InvalidRecord if there cannot be so many.

        A count that lies must not make a large table: no record is smaller than SMALLEST_RECORD.
        """
        count, size = header.record_count, self.end - self.start
        if not 0 <= count <= size // SMALLEST_RECORD:
            raise InvalidRecord(f"{count} records do not fit into {size} bytes", self.batch_position)
        return count

    def fault(self, problem: int, position: int, index: int) -> InvalidRecord:
        """A kernel's answer as the error to raise, placed in the buffer that the caller gave."""
        sentence = SENTENCES[Problem(problem)]
        if self.is_compressed:
            sentence += f" (byte {position} of the decompressed records)"
            position = self.batch_position
        return InvalidRecord(sentence, position, batch_index=index)


@dataclass(frozen=True, slots=True)
class RecordIndex:
    """Where everything lies in a batch's records; the positions count from the start of `buffer`."""

    buffer: Buffer
    table: memoryview
    count: int

    def column(self, column: Column) -> memoryview:
        """One field of all records."""
        return self.table[column : self.count * ROW_WIDTH : ROW_WIDTH]


def plain_records(buffer: Buffer, position: int, header: BatchHeader, max_bytes: int) -> PlainRecords:
    """Find the records of the batch at `position`, decompressed if need be to at most `max_bytes`."""
    end = position + header.size_in_bytes
    if end > len(buffer):
        raise TruncatedBatch(
            f"{len(buffer) - position} bytes left of a batch of {header.size_in_bytes}", position
        )
    try:
        codec = header.codec
    except UnsupportedCodec as error:
        raise UnsupportedCodec(error.problem, position) from None
    if codec is Codec.NONE:
        return PlainRecords(buffer, position + HEADER_SIZE, end, position, is_compressed=False)
    compressed = memoryview(buffer)[position + HEADER_SIZE : end]
    if header.record_count == 0 and not compressed:
        return PlainRecords(b"", 0, 0, position, is_compressed=True)
    try:
        plain = decompress(codec, compressed, max_bytes)
    except DecompressedTooLarge:
        raise DecompressedTooLarge(max_bytes, position) from None
    except CorruptBatch as error:
        raise CorruptBatch(error.problem, position) from None
    return PlainRecords(plain, 0, len(plain), position, is_compressed=True)


def read_records(buffer: Buffer, position: int = 0, *, max_bytes: int) -> list[Record]:
    """All records of the batch at `position`, unless they decompress to more than `max_bytes`."""
    header = read_header(buffer, position)
    plain = plain_records(buffer, position, header, max_bytes)
    is_log_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    records: list[Record] = []
    problem, fault_position, index = _read_records(
        plain.buffer,
        plain.start,
        plain.end,
        header.record_count,
        header.base_offset,
        header.max_timestamp_ms if is_log_append_time else header.base_timestamp_ms,
        is_log_append_time,
        records,
    )
    if problem:
        raise plain.fault(problem, fault_position, index)
    return records


def index_batch(
    buffer: Buffer, position: int = 0, *, max_bytes: int, header: BatchHeader | None = None
) -> RecordIndex:
    """Index the records of the batch at `position` without copying any of them.

    `header` is for those who have read it already.
    """
    if header is None:
        header = read_header(buffer, position)
    plain = plain_records(buffer, position, header, max_bytes)
    count = plain.count(header)
    table = memoryview(new_bytearray(count * ROW_WIDTH * 8)).cast("q")
    problem, fault_position, index = index_records(plain.buffer, plain.start, plain.end, count, table)
    if problem:
        raise plain.fault(problem, fault_position, index)
    return RecordIndex(plain.buffer, table, count)


def append_columns(
    sink: RecordsSink, header: BatchHeader, plain: PlainRecords, from_offset: int = FROM_THE_START
) -> None:
    """Append the records of a batch, from an offset on, to columns."""
    is_log_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    problem, fault_position, index = sink.append_batch(
        plain.buffer,
        plain.start,
        plain.end,
        plain.count(header),
        header.base_offset,
        header.max_timestamp_ms if is_log_append_time else header.base_timestamp_ms,
        is_log_append_time,
        from_offset,
    )
    if problem:
        raise plain.fault(problem, fault_position, index)
