# cython: annotation_typing=False
"""Splits the bytes that a leader sent into whole batches, and checks them. Pure.

Compiled by Cython (follower_batches.pxd has the C types), or interpreted as is. No record is decompressed or
looked at: the leader has validated them, and the CRC proves that they are what it stored.
"""

from __future__ import annotations

import cython

from odradek.log.errors import UnexpectedAppendOffset
from odradek.log.leader_epochs import EpochEntry
from odradek.log.partition.log_batch import LogBatch
from odradek.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_FLAG,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    Buffer,
)
from odradek.records.crc import crc32c
from odradek.records.errors import CorruptBatch

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import (
        int16_at,
        int32_at,
        int64_at,
        part_of,
        raw_bytes,
        uint32_at,
    )
else:
    from odradek.common.byte_access import int16_at, int32_at, int64_at, part_of, raw_bytes, uint32_at

# C integers by follower_batches.pxd; batch.py decides the numbers, and has the table of the positions.
_LOG_OVERHEAD = LOG_OVERHEAD
_HEADER_SIZE = HEADER_SIZE
_MAGIC_POSITION = MAGIC_POSITION
_MAGIC = MAGIC
_CRC_POSITION = CRC_POSITION
_CRC_BEGINS = ATTRIBUTES_POSITION
_CONTROL_FLAG = CONTROL_FLAG
_LAST_OFFSET = 2**63 - 1


class FollowerBatches:
    """The whole batches at the front of a fetch.

    `has_markers`: there are control batches of producers, whose markers the caller must read.
    """

    __slots__ = ("batches", "has_markers", "max_timestamp_ms", "payload")

    def __init__(
        self, payload: memoryview, batches: list[LogBatch], max_timestamp_ms: int, has_markers: bool
    ) -> None:
        self.payload = payload
        self.batches = batches
        self.max_timestamp_ms = max_timestamp_ms
        self.has_markers = has_markers

    def new_epochs(self, latest: int) -> list[EpochEntry]:
        """The leader epochs above `latest` that begin in these batches."""
        entries = []
        for batch in self.batches:
            if batch.leader_epoch > latest:
                latest = batch.leader_epoch
                entries.append(EpochEntry(latest, batch.base_offset))
        return entries


def whole_batches(records: Buffer, log_end_offset: int) -> FollowerBatches:
    """The batches that continue a log; an incomplete batch at the end is ignored.

    CorruptBatch for bytes that are no batch or have a wrong CRC, UnexpectedAppendOffset for offsets that go
    back.
    """
    view = records if isinstance(records, memoryview) else memoryview(records)
    raw = raw_bytes(view)
    size = len(view)
    position = 0
    max_timestamp_ms = -1
    has_markers = False
    batches: list[LogBatch] = []
    while size - position > _MAGIC_POSITION:
        length = int32_at(raw, position + 8) + _LOG_OVERHEAD
        if raw[position + _MAGIC_POSITION] != _MAGIC:
            raise CorruptBatch("the leader sent bytes that are no batch of magic 2", position)
        if length < _HEADER_SIZE:
            raise CorruptBatch("the leader sent a batch that is shorter than its header", position)
        if length > size - position:
            break
        base_offset = int64_at(raw, position)
        last_offset_delta = int32_at(raw, position + 23)
        if last_offset_delta < 0 or base_offset > _LAST_OFFSET - last_offset_delta:
            raise CorruptBatch(f"batch {base_offset} has an invalid last offset", position)
        if base_offset < log_end_offset:
            raise UnexpectedAppendOffset(base_offset, log_end_offset, base_offset + last_offset_delta)
        computed: int = crc32c(part_of(view, position + _CRC_BEGINS, position + length))
        if computed != uint32_at(raw, position + _CRC_POSITION):
            raise CorruptBatch(f"batch {base_offset} has a wrong CRC", position)
        header = None
        if int64_at(raw, position + 43) >= 0:
            header = BatchHeader._make(HEADER.unpack_from(view, position))
            if int16_at(raw, position + _CRC_BEGINS) & _CONTROL_FLAG:
                has_markers = True
        time_ms = int64_at(raw, position + 35)
        if time_ms > max_timestamp_ms:  # noqa: PLR1730 (two C integers)
            max_timestamp_ms = time_ms
        log_end_offset = base_offset + last_offset_delta + 1
        batches.append(
            LogBatch(
                base_offset,
                base_offset + last_offset_delta,
                length,
                time_ms,
                int32_at(raw, position + _LOG_OVERHEAD),
                header,
            )
        )
        position += length
    return FollowerBatches(part_of(view, 0, position), batches, max_timestamp_ms, has_markers)
