"""Puts records into a batch: encode, compress, write the header, take the CRC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from odradek.records.batch import (
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    TimestampType,
)
from odradek.records.compression import Codec, compress
from odradek.records.errors import BatchTooLarge, InvalidRecord
from odradek.records.kernels.encoding import encode_records, write_header
from odradek.records.kernels.record_objects import Record

MAX_BATCH_BYTES = 2**31 - 1
MAX_OFFSET_DELTA = 2**31 - 1

Headers = Sequence[tuple[str, bytes | None]]
BatchBuffer = TypeVar("BatchBuffer", bytearray, memoryview)


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    is_transactional: bool = False,
    is_control: bool = False,
    delete_horizon_ms: int | None = None,
    last_offset_delta: int | None = None,
    max_timestamp_ms: int | None = None,
) -> bytearray:
    """A batch of `records`, whose offsets grow from `base_offset` on, with gaps if a log needs them.

    A cleaned log gives `last_offset_delta` and `max_timestamp_ms` where the last or latest record is gone,
    and may have no records at all; else both come from the records. With log append time the max timestamp is
    what every reader sees.
    """
    records = list(records)
    offset_deltas = [record.offset - base_offset for record in records]
    if last_offset_delta is None:
        last_offset_delta = offset_deltas[-1] if records else 0
    _check_deltas(offset_deltas, last_offset_delta)
    timestamps_ms = [record.timestamp_ms for record in records]
    base_timestamp_ms = timestamps_ms[0] if records else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp_ms = delete_horizon_ms
    batch = encode_records(
        [record.key for record in records],
        [record.value for record in records],
        timestamps_ms,
        base_timestamp_ms,
        offset_deltas,
        [record.headers for record in records] if any(record.headers for record in records) else None,
        HEADER_SIZE,
    )
    if max_timestamp_ms is None:
        max_timestamp_ms = max(timestamps_ms, default=NO_TIMESTAMP)
    attributes = batch_attributes(
        timestamp_type, is_transactional, is_control, has_delete_horizon=delete_horizon_ms is not None
    )
    return finish_batch(
        batch,
        # Kafka's cleaner does the same: nothing is left to compress.
        codec=codec if records else Codec.NONE,
        level=level,
        attributes=attributes,
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        last_offset_delta=last_offset_delta,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )


def build_batch_from_columns(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    timestamps_ms: list[int],
    headers: list[Headers] | None = None,
    *,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
) -> bytearray:
    """A producer's batch from one list per field, offsets 0, 1, 2 …: no Python object per record is made."""
    if not values:
        raise InvalidRecord("a producer's batch needs a record")
    batch = encode_records(keys, values, timestamps_ms, timestamps_ms[0], None, headers, HEADER_SIZE)
    return finish_batch(
        batch,
        codec=codec,
        level=level,
        attributes=TRANSACTIONAL_FLAG if is_transactional else 0,
        base_offset=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        last_offset_delta=len(values) - 1,
        base_timestamp_ms=timestamps_ms[0],
        max_timestamp_ms=max(timestamps_ms),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(values),
    )


def batch_attributes(
    timestamp_type: TimestampType, is_transactional: bool, is_control: bool, has_delete_horizon: bool
) -> int:
    """The attributes of a batch header, all but the codec."""
    attributes = LOG_APPEND_TIME_FLAG if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    attributes |= TRANSACTIONAL_FLAG if is_transactional else 0
    attributes |= CONTROL_FLAG if is_control else 0
    return attributes | (DELETE_HORIZON_FLAG if has_delete_horizon else 0)


def with_codec(batch: BatchBuffer, codec: Codec, level: int | None) -> BatchBuffer | bytearray:
    """HEADER_SIZE free bytes and encoded records, the records compressed: itself unless there is a codec."""
    finished: BatchBuffer | bytearray = batch
    if codec is not Codec.NONE:
        finished = bytearray(HEADER_SIZE) + compress(codec, memoryview(batch)[HEADER_SIZE:], level)
    if len(finished) > MAX_BATCH_BYTES:
        raise BatchTooLarge(len(finished), MAX_BATCH_BYTES)
    return finished


def finish_batch(
    batch: BatchBuffer,
    *,
    codec: Codec,
    level: int | None,
    attributes: int,
    base_offset: int,
    partition_leader_epoch: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> BatchBuffer | bytearray:
    """Turn HEADER_SIZE free bytes and encoded records into a batch, in place unless there is a codec."""
    finished = with_codec(batch, codec, level)
    write_header(
        memoryview(finished),
        base_offset,
        partition_leader_epoch,
        attributes | codec,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    return finished


def _check_deltas(offset_deltas: list[int], last_offset_delta: int) -> None:
    previous = -1
    for index, delta in enumerate(offset_deltas):
        if not previous < delta <= last_offset_delta:
            raise InvalidRecord(f"offset delta {delta} after {previous}", batch_index=index)
        previous = delta
    if not 0 <= last_offset_delta <= MAX_OFFSET_DELTA:
        raise InvalidRecord(f"last offset delta {last_offset_delta} is no int32 from 0 on")
