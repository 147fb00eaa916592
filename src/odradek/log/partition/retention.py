"""Which segments may go, and why. Pure: the log asks, then deletes.

Only a prefix of the log is ever deleted, and only below the high watermark: a follower may still need the
rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple


class DeletionReason(Enum):
    """What made a segment superfluous."""

    TIME = "retention.ms"
    SIZE = "retention.bytes"
    LOG_START_OFFSET = "log start offset"


class RetainedSegment(NamedTuple):
    """A segment as retention sees it, oldest first in a sequence of them."""

    next_base_offset: int  # where the next segment begins; for the last one the log end
    size: int
    largest_timestamp_ms: Callable[[], int]  # asked for late, since it may cost a read


class Deletion(NamedTuple):
    """Delete the first `segment_count` segments."""

    segment_count: int
    reason: DeletionReason


def segments_to_delete(
    segments: Sequence[RetainedSegment],
    *,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
    log_start_offset: int,
    high_watermark: int,
    deletes: bool,
) -> Deletion | None:
    """The longest prefix that one of the three rules gives up; None if all stay.

    `deletes` is false for a topic that is only compacted: then only DeleteRecords frees segments. The last
    segment may be among them when it has expired; the log rolls it first, so that the active one is never
    deleted.
    """
    counts = [(_below_start(segments, log_start_offset), DeletionReason.LOG_START_OFFSET)]
    if deletes and retention_ms >= 0:
        counts.append((_expired(segments, now_ms - retention_ms), DeletionReason.TIME))
    if deletes and retention_bytes >= 0:
        counts.append((_oversize(segments, retention_bytes), DeletionReason.SIZE))
    committed = 0
    while committed < len(segments) and segments[committed].next_base_offset <= high_watermark:
        committed += 1
    count, reason = max(counts, key=lambda counted: counted[0])
    count = min(count, committed)
    return Deletion(count, reason) if count else None


def _below_start(segments: Sequence[RetainedSegment], log_start_offset: int) -> int:
    count = 0
    while count < len(segments) - 1 and segments[count].next_base_offset <= log_start_offset:
        count += 1
    return count


def _expired(segments: Sequence[RetainedSegment], oldest_ms: int) -> int:
    count = 0
    for segment in segments:
        # An empty last segment has nothing to expire; deleting it would only make another.
        if segment.size == 0 and count == len(segments) - 1:
            break
        if segment.largest_timestamp_ms() >= oldest_ms:
            break
        count += 1
    return count


def _oversize(segments: Sequence[RetainedSegment], retention_bytes: int) -> int:
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < len(segments) - 1 and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count
