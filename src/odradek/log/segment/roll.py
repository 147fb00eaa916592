"""When a segment ends: four conditions, answered as a reason. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

MAX_RELATIVE_OFFSET = 2**31 - 1


class RollReason(Enum):
    """Why the next batch goes into a new segment."""

    SIZE = "size"
    TIME = "time"
    INDEX_FULL = "index full"
    OFFSET_OVERFLOW = "offset overflow"


class SegmentFacts(NamedTuple):
    """What a segment is before the append."""

    base_offset: int
    size: int
    created_ms: int
    first_timestamp_ms: int  # the max timestamp of its first batch, -1 without
    is_index_full: bool
    roll_jitter_ms: int


class IncomingBatches(NamedTuple):
    """What is to be appended."""

    size: int
    max_timestamp_ms: int
    last_offset: int


def roll_reason(
    segment: SegmentFacts, incoming: IncomingBatches, *, max_segment_bytes: int, segment_ms: int, now_ms: int
) -> RollReason | None:
    """The first condition that holds, or None when the segment can take the batches.

    An empty segment is never too small or too old: rolling it would make another empty one.
    """
    size = segment.size
    if size > 0:
        if size > max_segment_bytes - incoming.size:
            return RollReason.SIZE
        # By the records' own time, so that a replica rolls where its leader did; without it, by the clock.
        if segment.first_timestamp_ms >= 0:
            waited_ms = incoming.max_timestamp_ms - segment.first_timestamp_ms
        else:
            waited_ms = now_ms - segment.created_ms
        if waited_ms > segment_ms - segment.roll_jitter_ms:
            return RollReason.TIME
    if segment.is_index_full:
        return RollReason.INDEX_FULL
    if incoming.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
        return RollReason.OFFSET_OVERFLOW
    return None
