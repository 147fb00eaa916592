# cython: annotation_typing=False
"""Whether a producer's batch is valid, found out at a fraction of what it costs to name what is wrong.

Compiled by Cython (fast_validation.pxd has the C types), or interpreted as is. Every batch of every producer
is checked here, and nearly all are valid; of the others `validate.validate_for_produce` names what is wrong.
"""

from __future__ import annotations

from typing import Any

import cython

from odradek.records.batch import ATTRIBUTES_POSITION as _ATTRIBUTES_POSITION
from odradek.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    Buffer,
)
from odradek.records.compression import Codec, DecompressedView, free_scratch, new_scratch
from odradek.records.crc import crc32c
from odradek.records.errors import RecordsError
from odradek.records.kernels.layout import ROW_WIDTH
from odradek.records.kernels.lz4_frames import NOT_ORDINARY

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import (
        int16_at,
        int32_at,
        int64_at,
        part_of,
        raw_bytes,
        uint32_at,
    )
    from cython.cimports.odradek.records.kernels.lz4_frames import decompress_into
    from cython.cimports.odradek.records.kernels.record_check import check_raw_records
else:
    from odradek.common.byte_access import int16_at, int32_at, int64_at, part_of, raw_bytes, uint32_at
    from odradek.records.kernels.lz4_frames import decompress_into
    from odradek.records.kernels.record_check import check_records_into as check_raw_records

# C integers by fast_validation.pxd; batch.py decides the numbers, and has the table of the positions.
_CRC_BEGINS = _ATTRIBUTES_POSITION
_CRC_POSITION = CRC_POSITION
_MAGIC_POSITION = MAGIC_POSITION
_CODEC_MASK = CODEC_MASK
_CONTROL_FLAG = CONTROL_FLAG
_LOG_APPEND_TIME_FLAG = LOG_APPEND_TIME_FLAG
_HEADER_SIZE = HEADER_SIZE
_LOG_OVERHEAD = LOG_OVERHEAD
_MAGIC = MAGIC
_NO_TIMESTAMP = NO_TIMESTAMP
_LZ4 = Codec.LZ4
_LAST_CODEC = Codec.ZSTD
KEEP_CODEC = -1
_free_scratch = free_scratch
_FOUND_LEAST, _FOUND_GREATEST = 2, 3
# Times beyond it are no times; what two within it differ by does not overflow.
ENDLESS_MS = 2**61
_ENDLESS_MS = ENDLESS_MS


class ValidBatch:
    """What an append has to know of a valid batch.

    `max_timestamp_ms` is the header's, `greatest_ms` that of its records (-1 without any). `plain`: its
    records without compression, if they are to be compressed by another codec.
    """

    __slots__ = (
        "attributes",
        "greatest_ms",
        "last_offset_delta",
        "max_timestamp_ms",
        "plain",
        "producer_id",
    )

    def __init__(
        self,
        attributes: int,
        last_offset_delta: int,
        max_timestamp_ms: int,
        greatest_ms: int,
        producer_id: int,
        plain: Buffer | None,
    ) -> None:
        self.attributes = attributes
        self.last_offset_delta = last_offset_delta
        self.max_timestamp_ms = max_timestamp_ms
        self.greatest_ms = greatest_ms
        self.producer_id = producer_id
        self.plain = plain


def accept(
    view: memoryview,
    max_message_bytes: int,
    max_decompressed_bytes: int,
    requires_key: bool,
    checks_times: bool,
    earliest_ms: int,
    latest_ms: int,
    codec: int,
) -> ValidBatch | None:
    """The batch that fills `view` if it is valid in every way, else None.

    `checks_times`: records must lie between the two times, and the producer must have set them. `codec`: what
    the log stores, KEEP_CODEC for what the producer chose. Of the few batches with timestamps beyond any
    calendar None is returned although some are valid.
    """
    size = len(view)
    if size <= _HEADER_SIZE or size > max_message_bytes:
        return None
    raw = raw_bytes(view)
    attributes = int16_at(raw, 21)
    last_delta = int32_at(raw, 23)
    base_ms = int64_at(raw, 27)
    max_ms = int64_at(raw, 35)
    producer_id = int64_at(raw, 43)
    count = int32_at(raw, 57)
    if int64_at(raw, 0) != 0 or int32_at(raw, 8) != size - _LOG_OVERHEAD or raw[_MAGIC_POSITION] != _MAGIC:
        return None
    if count <= 0 or count != last_delta + 1 or (producer_id >= 0 and int32_at(raw, 53) < 0):
        return None
    if attributes & _CONTROL_FLAG or base_ms > _ENDLESS_MS or base_ms < -_ENDLESS_MS:
        return None
    if checks_times and (attributes & _LOG_APPEND_TIME_FLAG or max_ms > latest_ms):
        return None
    if crc32c(part_of(view, _CRC_BEGINS, size)) != uint32_at(raw, _CRC_POSITION):
        return None
    if not cython.compiled:
        row = [0] * ROW_WIDTH
    untimed_delta_ms = _NO_TIMESTAMP - base_ms
    own_codec = attributes & _CODEC_MASK
    keeps_plain = codec >= 0 and codec != own_codec
    kept: list[Buffer] | None = [] if keeps_plain else None
    if own_codec:
        problem = _check_compressed(
            view, own_codec, max_decompressed_bytes, count, requires_key, untimed_delta_ms, row, kept
        )
    else:
        problem = check_raw_records(
            raw, _HEADER_SIZE, size, count, last_delta, True, requires_key, untimed_delta_ms, row
        )
        if kept is not None:
            kept.append(part_of(view, _HEADER_SIZE, size))
    if problem:
        return None
    if checks_times and row[_FOUND_GREATEST] > latest_ms - base_ms:
        return None
    if checks_times and row[_FOUND_LEAST] < earliest_ms - base_ms:
        return None
    greatest_ms = base_ms + row[_FOUND_GREATEST]
    return ValidBatch(attributes, last_delta, max_ms, greatest_ms, producer_id, kept[0] if kept else None)


def _check_compressed(
    view: memoryview,
    codec: int,
    max_decompressed_bytes: int,
    count: int,
    requires_key: bool,
    untimed_delta_ms: int,
    row: Any,
    kept: list[Buffer] | None,
) -> int:
    """Like `check_raw_records`; a problem too if it does not decompress. Adds the plain records to `kept`."""
    problem: int = 1
    if codec > _LAST_CODEC:
        return problem
    size = NOT_ORDINARY
    if codec == _LZ4:
        scratch = _free_scratch.pop() if _free_scratch else new_scratch()
        output = scratch if max_decompressed_bytes >= len(scratch) else scratch[:max_decompressed_bytes]
        size = decompress_into(view, _HEADER_SIZE, output)
        if size >= 0:
            problem = check_raw_records(
                raw_bytes(scratch), 0, size, count, count - 1, True, requires_key, untimed_delta_ms, row
            )
            if kept is not None:
                kept.append(bytes(scratch[:size]))
        _free_scratch.append(scratch)
    if size < 0:
        try:
            with DecompressedView(Codec(codec), view[_HEADER_SIZE:], max_decompressed_bytes) as plain:
                whole, size = memoryview(plain), len(plain)
                problem = check_raw_records(
                    raw_bytes(whole), 0, size, count, count - 1, True, requires_key, untimed_delta_ms, row
                )
                if kept is not None:
                    kept.append(bytes(whole))
        except (RecordsError, ValueError):
            problem = 1
    return problem
