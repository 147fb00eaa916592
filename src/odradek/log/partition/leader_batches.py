"""What a leader does to batches before it appends them: name what is wrong, change the codec. Pure.

Batches of a client stay the bytes they came as, but for base offset and leader epoch, unless the topic wants
another codec (`compression.type`) or the broker's time (`message.timestamp.type`).
"""

from __future__ import annotations

from enum import Enum

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_POSITION,
    BatchHeader,
    Buffer,
    TimestampType,
    iterate_headers,
    renew_crc,
    stamp,
    stamp_log_append_time,
)
from odradek.records.compression import Codec, compress
from odradek.records.errors import BatchTooLarge, InvalidRecord
from odradek.records.fast_validation import KEEP_CODEC, ValidBatch
from odradek.records.record import plain_records
from odradek.records.validate import validate_for_log, validate_for_produce

DECOMPRESSION_FACTOR = 64
"""A batch may decompress to this many times `max.message.bytes`."""

_LENGTH = slice(8, 12)
_ATTRIBUTES = slice(ATTRIBUTES_POSITION, ATTRIBUTES_POSITION + 2)
_MAX_TIMESTAMP = slice(MAX_TIMESTAMP_POSITION, MAX_TIMESTAMP_POSITION + 8)

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


def max_decompressed_bytes(config: LogConfig) -> int:
    """How much a batch of this topic may become when it is decompressed."""
    return DECOMPRESSION_FACTOR * max(config.max_message_bytes, 1)


def writable_view(records: Buffer) -> memoryview:
    """The bytes themselves if they may be stamped in place, else a copy."""
    view = memoryview(records)
    return memoryview(bytearray(records)) if view.readonly else view


def validate_from_client(
    view: memoryview, config: LogConfig, now_ms: int, partition: TopicPartition
) -> ValidBatch:
    """Check a batch that the fast validation did not accept, to name what is wrong with it; see there."""
    keeps_times = config.message_timestamp_type == "CreateTime"
    earliest_ms = now_ms - config.message_timestamp_before_max_ms
    latest_ms = now_ms + config.message_timestamp_after_max_ms
    header = validate_for_produce(
        view,
        max_message_bytes=config.max_message_bytes,
        max_decompressed_bytes=max_decompressed_bytes(config),
        requires_key=config.is_compacted,
        timestamp_range_ms=(earliest_ms, latest_ms) if keeps_times else None,
        partition=partition,
    )
    if header.size_in_bytes != len(view):
        raise InvalidRecord("more than one batch for a partition", header.size_in_bytes)
    # Retention and the time index believe the header's greatest timestamp, so it is held to the same limit.
    is_lying = header.max_timestamp_ms > latest_ms or header.timestamp_type is TimestampType.LOG_APPEND_TIME
    if keeps_times and is_lying:
        raise InvalidRecord(
            f"max timestamp {header.max_timestamp_ms} of type {header.timestamp_type.name}",
            error_code=ErrorCode.INVALID_TIMESTAMP,
        )
    plain = plain_records(view, 0, header, max_decompressed_bytes(config))
    return ValidBatch(
        header.attributes,
        header.last_offset_delta,
        header.max_timestamp_ms,
        header.max_timestamp_ms,
        header.producer_id,
        memoryview(plain.buffer)[plain.start : plain.end],
    )


def validate_from_coordinator(view: memoryview, config: LogConfig) -> list[BatchHeader]:
    """Check batches that this broker has made; their headers."""
    headers = []
    for position, header in iterate_headers(view):
        if header.size_in_bytes > config.max_message_bytes:
            raise BatchTooLarge(header.size_in_bytes, config.max_message_bytes, position)
        validate_for_log(view, position, max_decompressed_bytes=max_decompressed_bytes(config))
        headers.append(header)
    return headers


def stored_codec(config: LogConfig) -> int:
    """The codec in which batches are stored; KEEP_CODEC for whatever the producer chose."""
    return _CODECS.get(config.compression_type, KEEP_CODEC)


def recompress(batch: memoryview, plain: Buffer, max_timestamp_ms: int, config: LogConfig) -> memoryview:
    """The batch in the codec of the topic; `plain` are its records without compression."""
    codec = _CODECS[config.compression_type]
    changed = bytearray(batch[:HEADER_SIZE])
    changed += compress(codec, plain, _level(codec, config))
    attributes = int.from_bytes(changed[_ATTRIBUTES], "big") & ~CODEC_MASK | codec
    changed[_LENGTH] = (len(changed) - LOG_OVERHEAD).to_bytes(4, "big")
    changed[_ATTRIBUTES] = attributes.to_bytes(2, "big")
    changed[_MAX_TIMESTAMP] = max_timestamp_ms.to_bytes(8, "big", signed=True)
    renew_crc(changed, 0, len(changed))
    return memoryview(changed)


def recompress_all(
    view: memoryview, headers: list[BatchHeader], config: LogConfig
) -> tuple[memoryview, list[BatchHeader]]:
    """The batches in the codec of the topic, except for control batches."""
    codec = stored_codec(config)
    if codec == KEEP_CODEC or all(header.is_control or header.codec == codec for header in headers):
        return view, headers
    changed = bytearray()
    position = 0
    for header in headers:
        end = position + header.size_in_bytes
        batch = view[position:end]
        if not header.is_control and header.codec != codec:
            plain = plain_records(batch, 0, header, max_decompressed_bytes(config))
            bare = memoryview(plain.buffer)[plain.start : plain.end]
            batch = recompress(batch, bare, header.max_timestamp_ms, config)
        changed += batch
        position = end
    return memoryview(changed), [header for _, header in iterate_headers(changed)]


def stamp_times(view: memoryview, headers: list[BatchHeader], now_ms: int) -> list[BatchHeader]:
    """Make `now_ms` the time of every record; the new headers."""
    position = 0
    for header in headers:
        stamp_log_append_time(view, position, now_ms)
        position += header.size_in_bytes
    return [header for _, header in iterate_headers(view)]


def stamp_all(
    view: memoryview, headers: list[BatchHeader], next_offset: int, leader_epoch: int
) -> list[BatchHeader]:
    """Give the batches their offsets, from `next_offset` on, and the leader's epoch; their new headers."""
    stamped = []
    position = 0
    for header in headers:
        stamp(view, position, next_offset, leader_epoch)
        stamped.append(header._replace(base_offset=next_offset, partition_leader_epoch=leader_epoch))
        position += header.size_in_bytes
        next_offset += header.last_offset_delta + 1
    return stamped


def _level(codec: Codec, config: LogConfig) -> int | None:
    levels = {
        Codec.GZIP: config.compression_gzip_level if config.compression_gzip_level > 0 else None,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return levels.get(codec)
