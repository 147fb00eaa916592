"""Find records by their time. Everything here may block: it can read and decompress whole batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.log.segment.segment import Segment
from odradek.log.segment.segment_reader import BatchSpan
from odradek.records.batch import read_header
from odradek.records.record import read_records


class TimestampedOffset(NamedTuple):
    """A record as ListOffsets returns it."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def first_at_or_after(
    segments: Iterable[Segment], timestamp_ms: int, start_offset: int, max_batch_bytes: int
) -> TimestampedOffset | None:
    """The first record from `start_offset` on that is as young as `timestamp_ms`, or younger."""
    for segment in segments:
        if segment.size == 0 or segment.max_timestamp().timestamp_ms < timestamp_ms:
            continue
        span = segment.first_batch_at_or_after(timestamp_ms, start_offset)
        if span is None:
            continue
        for candidate in segment.walk(span.position):
            if candidate.max_timestamp_ms >= timestamp_ms:
                found = _first_record(segment, candidate, timestamp_ms, start_offset, max_batch_bytes)
                if found is not None:
                    return found
    return None


def youngest(
    segments: Iterable[Segment], start_offset: int, max_batch_bytes: int
) -> TimestampedOffset | None:
    """The first of the records that have the greatest timestamp of all."""
    greatest_ms = max((s.max_timestamp().timestamp_ms for s in segments if s.size), default=-1)
    if greatest_ms < 0:
        return None
    return first_at_or_after(segments, greatest_ms, start_offset, max_batch_bytes)


def _first_record(
    segment: Segment, span: BatchSpan, timestamp_ms: int, start_offset: int, max_batch_bytes: int
) -> TimestampedOffset | None:
    batch = segment.batch_at(span)
    for record in read_records(batch, max_bytes=max_batch_bytes):
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            epoch = read_header(batch).partition_leader_epoch
            return TimestampedOffset(record.timestamp_ms, record.offset, epoch)
    return None
