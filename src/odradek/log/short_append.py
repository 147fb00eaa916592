"""The way of nearly every batch into a log: check, stamp, write, index, and nothing else to decide.

What `PartitionLog.append_as_leader` asks for each append (another codec? the broker's time? a new segment?)
has the same answer for thousands of batches. Those answers are kept as `Terms`, and a batch within them takes
this way, at half the cost. For any other batch it answers None before anything has changed.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from odradek.log.config import LogConfig
from odradek.log.epochs import LeaderEpochs
from odradek.log.leader_batches import max_decompressed_bytes, stamp_one
from odradek.log.producers import BatchMetadata, ProducerStates
from odradek.log.roll import MAX_RELATIVE_OFFSET
from odradek.log.segment import Segment
from odradek.log.segments import Segments
from odradek.records.batch import BatchHeader
from odradek.records.validate import accept_for_produce


class Terms(NamedTuple):
    """What holds for appends to one segment under one configuration; all limits are inclusive."""

    config: LogConfig
    segment: Segment
    was_empty: bool  # then the segment had no time to roll by yet, and the terms end with its first batch
    is_ordinary: bool
    max_message_bytes: int
    max_decompressed_bytes: int
    requires_key: bool
    before_max_ms: int
    after_max_ms: int
    max_size: int
    max_timestamp_ms: int
    max_offset: int


class Appendable(Protocol):
    """What is needed of a partition's log; the terms are kept there."""

    config: LogConfig
    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    log_end_offset: int
    terms: Terms | None


class Shortcut(NamedTuple):
    """A batch that went this way: its header as it is in the log, or the earlier append of the same batch."""

    header: BatchHeader | None
    earlier: BatchMetadata | None = None


def terms_of(config: LogConfig, segment: Segment) -> Terms:
    """What holds for the next appends to this segment."""
    is_ordinary = (
        segment.first_timestamp_ms() >= 0
        and config.compression_type == "producer"
        and config.message_timestamp_type == "CreateTime"
    )
    return Terms(
        config,
        segment,
        segment.size == 0,
        is_ordinary,
        config.max_message_bytes,
        max_decompressed_bytes(config),
        config.is_compacted,
        config.message_timestamp_before_max_ms,
        config.message_timestamp_after_max_ms,
        config.max_segment_bytes,
        segment.first_timestamp_ms() + config.max_segment_ms - segment.roll_jitter_ms,
        segment.base_offset + MAX_RELATIVE_OFFSET,
    )


def try_append(log: Appendable, records: memoryview, leader_epoch: int, now_ms: int) -> Shortcut | None:
    """Append a client's batch if it is ordinary in every way. OSError if the disk fails."""
    terms = log.terms
    segment = log.segments.active
    if terms is None or terms.segment is not segment or terms.config is not log.config:
        terms = log.terms = terms_of(log.config, segment)
    if not terms.is_ordinary or segment.size + len(records) > terms.max_size or records.readonly:
        if terms.was_empty and segment.size > 0:
            log.terms = None
        return None
    if leader_epoch != log.epochs.latest or segment.wants_room(terms.config.segment_index_bytes):
        return None
    header = accept_for_produce(
        records,
        max_message_bytes=terms.max_message_bytes,
        max_decompressed_bytes=terms.max_decompressed_bytes,
        requires_key=terms.requires_key,
        timestamp_range_ms=(now_ms - terms.before_max_ms, now_ms + terms.after_max_ms),
    )
    if header is None or header.max_timestamp_ms > terms.max_timestamp_ms:
        return None
    base_offset = log.log_end_offset
    if base_offset + header.last_offset_delta > terms.max_offset:
        return None
    if header.producer_id >= 0:
        earlier = log.producers.duplicate_of(header)
        if earlier is not None:
            return Shortcut(None, earlier)
        log.producers.check(header)
    return Shortcut(_write(segment, records, header, base_offset, leader_epoch, log.producers))


def _write(
    segment: Segment,
    records: memoryview,
    header: BatchHeader,
    base_offset: int,
    leader_epoch: int,
    producers: ProducerStates,
) -> BatchHeader:
    header = stamp_one(records, 0, header, base_offset, leader_epoch)
    segment.append(records, base_offset, header.last_offset, header.max_timestamp_ms)
    producers.apply(header)
    return header
