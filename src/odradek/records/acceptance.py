# cython: annotation_typing=False
"""Whether a producer's batch is good in every way, told at a fraction of what it costs to say what is wrong.

Compiled by Cython (acceptance.pxd has the C types), or interpreted as is. Every batch of every producer comes
by here, and nearly all are good; of the others `validate.validate_for_produce` tells what is wrong.
"""

from __future__ import annotations

from typing import Any

from odradek.records.batch import ATTRIBUTES_POSITION as _CRC_BEGINS

# C integers by acceptance.pxd; batch.py decides the numbers.
from odradek.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    Buffer,
)
from odradek.records.compression import Codec, Glimpse
from odradek.records.crc import crc32c
from odradek.records.errors import RecordsError
from odradek.records.kernels import check_records

_CRC_POSITION = _CRC_BEGINS
_CODEC_MASK = CODEC_MASK
_UNKNOWN_ATTRIBUTES = ~(CODEC_MASK | TRANSACTIONAL_FLAG)
_HEADER_SIZE = HEADER_SIZE
_LOG_OVERHEAD = LOG_OVERHEAD
_MAGIC = MAGIC
_NO_TIMESTAMP = NO_TIMESTAMP
# Times beyond it are no times; what two within it differ by does not overflow.
ENDLESS_MS = 2**61
_ENDLESS_MS = ENDLESS_MS
_unpack_header = HEADER.unpack_from


def accept_for_produce(
    buffer: Buffer,
    max_message_bytes: int,
    max_decompressed_bytes: int,
    requires_key: bool,
    earliest_ms: int,
    latest_ms: int,
) -> BatchHeader | None:
    """The header of a batch that fills `buffer` and is good and ordinary in every way, else None."""
    fields = accepted_fields(
        buffer, max_message_bytes, max_decompressed_bytes, requires_key, earliest_ms, latest_ms
    )
    return None if fields is None else BatchHeader._make(fields)


def accepted_fields(
    buffer: Buffer,
    max_message_bytes: int,
    max_decompressed_bytes: int,
    requires_key: bool,
    earliest_ms: int,
    latest_ms: int,
) -> tuple[int, ...] | None:
    """Like `accept_for_produce`, and as quick as can be."""
    size = len(buffer)
    if size <= _HEADER_SIZE or size > max_message_bytes:
        return None
    fields = _unpack_header(buffer)
    (
        base_offset,
        length,
        _leader_epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_ms,
        max_ms,
        producer_id,
        _producer_epoch,
        base_sequence,
        count,
    ) = fields
    if base_offset != 0 or magic != _MAGIC or length != size - _LOG_OVERHEAD:
        return None
    if count <= 0 or count != last_delta + 1 or (producer_id >= 0 and base_sequence < 0):
        return None
    if attributes & _UNKNOWN_ATTRIBUTES or base_ms > _ENDLESS_MS or base_ms < -_ENDLESS_MS:
        return None
    view = memoryview(buffer)
    if crc32c(view[_CRC_POSITION:]) != crc:
        return None
    untimed_delta_ms = _NO_TIMESTAMP - base_ms
    if attributes & _CODEC_MASK:
        found = _check_compressed(
            view, attributes & _CODEC_MASK, max_decompressed_bytes, count, requires_key, untimed_delta_ms
        )
        if found is None:
            return None
    else:
        found = check_records(
            view, _HEADER_SIZE, size, count, last_delta, True, requires_key, untimed_delta_ms
        )
    problem, _, _, least_delta_ms, greatest_delta_ms = found
    if problem or max_ms > latest_ms or greatest_delta_ms > latest_ms - base_ms:
        return None
    if least_delta_ms < earliest_ms - base_ms:
        return None
    return fields


def _check_compressed(
    view: memoryview,
    codec: int,
    max_decompressed_bytes: int,
    count: int,
    requires_key: bool,
    untimed_delta_ms: int,
) -> Any:
    try:
        with Glimpse(Codec(codec), view[_HEADER_SIZE:], max_decompressed_bytes) as plain:
            return check_records(plain, 0, len(plain), count, count - 1, True, requires_key, untimed_delta_ms)
    except (RecordsError, ValueError):
        return None
