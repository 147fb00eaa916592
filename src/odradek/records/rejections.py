"""Which records of a batch a topic does not accept: without a key, or with a timestamp out of range. Pure.

Only for batches with such a record: finding all of them costs far more than finding out that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.records.batch import NO_TIMESTAMP, BatchHeader
from odradek.records.errors import RecordError
from odradek.records.kernels.layout import ROW_WIDTH, Column
from odradek.records.kernels.record_check import new_bytearray
from odradek.records.kernels.record_index import index_records
from odradek.records.record import PlainRecords

MAX_RECORD_ERRORS = 100_000
"""More are not reported: a compressed batch can have millions of records, and each costs 100 bytes."""
CHUNK_RECORDS = 4096


def rejected_records(
    plain: PlainRecords,
    header: BatchHeader,
    *,
    requires_key: bool,
    timestamp_range_ms: tuple[int, int] | None,
    partition: TopicPartition | None,
) -> list[RecordError]:
    """Each record that is not accepted, with Kafka's message: at most one a record, a missing key first.

    The structure of the records has been checked.
    """
    no_key = "Compacted topic cannot accept message without key"
    if partition is not None:
        no_key += f" in topic partition {partition}"
    found: Iterator[RecordError] = (
        error
        for index, key_length, timestamp_ms in _keys_and_times(plain, header)
        if (error := _judge(index, key_length, timestamp_ms, requires_key, timestamp_range_ms, no_key))
    )
    return list(islice(found, MAX_RECORD_ERRORS))


def _judge(
    index: int,
    key_length: int,
    timestamp_ms: int,
    requires_key: bool,
    timestamp_range_ms: tuple[int, int] | None,
    no_key: str,
) -> RecordError | None:
    if requires_key and key_length < 0:
        return RecordError(index, no_key)
    if timestamp_range_ms is None or timestamp_ms == NO_TIMESTAMP:
        return None
    earliest_ms, latest_ms = timestamp_range_ms
    if earliest_ms <= timestamp_ms <= latest_ms:
        return None
    message = (
        f"Timestamp {timestamp_ms} of message with offset {index} is out of range. "
        f"The timestamp should be within [{earliest_ms}, {latest_ms}]"
    )
    return RecordError(index, message, ErrorCode.INVALID_TIMESTAMP)


def _keys_and_times(plain: PlainRecords, header: BatchHeader) -> Iterator[tuple[int, int, int]]:
    """Index, length of the key (-1 without one) and timestamp of every record."""
    table = memoryview(new_bytearray(CHUNK_RECORDS * ROW_WIDTH * 8)).cast("q")
    position, index = plain.start, 0
    while index < header.record_count:
        count = min(CHUNK_RECORDS, header.record_count - index)
        _, position, _ = index_records(plain.buffer, position, plain.end, count, table)
        end = count * ROW_WIDTH
        lengths = table[Column.KEY_LENGTH : end : ROW_WIDTH]
        deltas_ms = table[Column.TIMESTAMP_DELTA : end : ROW_WIDTH]
        for length, delta_ms in zip(lengths, deltas_ms, strict=True):
            yield index, length, header.base_timestamp_ms + delta_ms
            index += 1
