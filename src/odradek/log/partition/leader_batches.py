"""What a leader does to batches before it appends them: check, set times, change the codec. Pure.

Batches of a client stay the bytes they came as, but for base offset and leader epoch, unless the topic wants
another codec (`compression.type`) or the broker's time (`message.timestamp.type`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.log.config import LogConfig
from odradek.records.batch import (
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    Buffer,
    TimestampType,
    iterate_headers,
    stamp,
    stamp_log_append_time,
)
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.errors import BatchTooLarge, InvalidRecord
from odradek.records.fast_validation import ENDLESS_MS, accept_for_produce
from odradek.records.record import read_records
from odradek.records.validate import validate_for_log, validate_for_produce

DECOMPRESSION_FACTOR = 64
"""SPEC I6: a batch may decompress to this many times `max.message.bytes`."""

_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class Origin(Enum):
    """Who asks for an append. A coordinator, this broker itself, may write control batches, and several."""

    CLIENT = "client"
    COORDINATOR = "coordinator"


class LeaderBatches(NamedTuple):
    """Bytes that may be stamped in place, and the headers of the batches in them."""

    payload: bytearray | memoryview
    headers: list[BatchHeader]


def prepare(records: Buffer, config: LogConfig, *, now_ms: int, origin: Origin) -> LeaderBatches:
    """Batches fit to be appended; RecordsError if they are not."""
    payload = _writable(records)
    if origin is Origin.CLIENT:
        headers = [_validate_clients(payload, config, now_ms)]
    else:
        headers = _validate_own(payload, config)
    if config.compression_type != "producer":
        payload, headers = _recompress(payload, headers, config)
    if config.message_timestamp_type == "LogAppendTime":
        headers = _stamp_times(payload, headers, now_ms)
    return LeaderBatches(payload, headers)


def max_decompressed_bytes(config: LogConfig) -> int:
    """How much a batch of this topic may become when it is decompressed."""
    return DECOMPRESSION_FACTOR * max(config.max_message_bytes, 1)


def stamp_all(
    payload: bytearray | memoryview, headers: Iterable[BatchHeader], next_offset: int, leader_epoch: int
) -> list[BatchHeader]:
    """Give the batches their offsets, from `next_offset` on, and the leader's epoch; their new headers."""
    stamped = []
    position = 0
    for header in headers:
        stamp(payload, position, next_offset, leader_epoch)
        stamped.append(header._replace(base_offset=next_offset, partition_leader_epoch=leader_epoch))
        position += header.size_in_bytes
        next_offset += header.last_offset_delta + 1
    return stamped


def _writable(records: Buffer) -> bytearray | memoryview:
    if isinstance(records, bytearray) or (isinstance(records, memoryview) and not records.readonly):
        return records
    return bytearray(records)


def _validate_clients(payload: bytearray | memoryview, config: LogConfig, now_ms: int) -> BatchHeader:
    keeps_times = config.message_timestamp_type == "CreateTime"
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    if keeps_times:
        accepted = accept_for_produce(
            payload,
            config.max_message_bytes,
            max_decompressed_bytes(config),
            config.is_compacted,
            max(earliest_ms, -ENDLESS_MS),
            min(latest_ms, ENDLESS_MS),
        )
        if accepted is not None:
            return accepted
    header = validate_for_produce(
        payload,
        max_message_bytes=config.max_message_bytes,
        max_decompressed_bytes=max_decompressed_bytes(config),
        requires_key=config.is_compacted,
        timestamp_range_ms=(earliest_ms, latest_ms) if keeps_times else None,
    )
    if header.size_in_bytes != len(payload):
        raise InvalidRecord("more than one batch for a partition", header.size_in_bytes)
    # Retention and the time index believe the header's greatest timestamp, so it is held to the same limit.
    is_lying = header.max_timestamp_ms > latest_ms or header.timestamp_type is TimestampType.LOG_APPEND_TIME
    if keeps_times and is_lying:
        raise InvalidRecord(
            f"max timestamp {header.max_timestamp_ms} of type {header.timestamp_type.name}",
            error_code=ErrorCode.INVALID_TIMESTAMP,
        )
    return header


def _validate_own(payload: bytearray | memoryview, config: LogConfig) -> list[BatchHeader]:
    headers = []
    for position, header in iterate_headers(payload):
        if header.size_in_bytes > config.max_message_bytes:
            raise BatchTooLarge(header.size_in_bytes, config.max_message_bytes, position)
        validate_for_log(payload, position, max_decompressed_bytes=max_decompressed_bytes(config))
        headers.append(header)
    return headers


def _recompress(
    payload: bytearray | memoryview, headers: list[BatchHeader], config: LogConfig
) -> tuple[bytearray | memoryview, list[BatchHeader]]:
    codec = _CODECS[config.compression_type]
    if all(header.codec is codec or header.is_control for header in headers):
        return payload, headers
    changed = bytearray()
    position = 0
    for header in headers:
        end = position + header.size_in_bytes
        is_kept = header.codec is codec or header.is_control
        changed += payload[position:end] if is_kept else _rebuild(payload, position, header, codec, config)
        position = end
    return changed, [header for _, header in iterate_headers(changed)]


def _rebuild(
    payload: bytearray | memoryview, position: int, header: BatchHeader, codec: Codec, config: LogConfig
) -> bytearray:
    return build_batch(
        read_records(payload, position, max_bytes=max_decompressed_bytes(config)),
        base_offset=header.base_offset,
        codec=codec,
        level=_level(codec, config),
        timestamp_type=header.timestamp_type,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
    )


def _level(codec: Codec, config: LogConfig) -> int | None:
    levels = {
        Codec.GZIP: config.compression_gzip_level if config.compression_gzip_level > 0 else None,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)


def _stamp_times(
    payload: bytearray | memoryview, headers: list[BatchHeader], now_ms: int
) -> list[BatchHeader]:
    stamped = []
    position = 0
    for header in headers:
        stamp_log_append_time(payload, position, now_ms)
        attributes = header.attributes | LOG_APPEND_TIME_FLAG
        stamped.append(header._replace(attributes=attributes, max_timestamp_ms=now_ms))
        position += header.size_in_bytes
    return stamped
