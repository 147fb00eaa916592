# cython: annotation_typing=False
"""The way of nearly every batch into a log: check, stamp, write, index, and nothing else to decide.

What `PartitionLog.append_as_leader` asks for each append (another codec? the broker's time? a new segment?)
has the same answer for thousands of batches. Those answers are kept as `Terms`, and a batch within them takes
this way, at a fraction of the cost. For any other batch it answers None before anything has changed.

Compiled by Cython (short_append.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from typing import Protocol

from odradek.log.config import LogConfig
from odradek.log.epochs import LeaderEpochs
from odradek.log.leader_batches import max_decompressed_bytes, stamp_one
from odradek.log.producers import BatchMetadata, ProducerStates
from odradek.log.roll import MAX_RELATIVE_OFFSET
from odradek.log.segment import Segment
from odradek.log.segments import Segments
from odradek.records.batch import BatchHeader, stamp

try:
    import cython
except ImportError:
    from odradek.records import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.records.acceptance import accepted_fields
else:
    from odradek.records.acceptance import accepted_fields

from odradek.records.acceptance import ENDLESS_MS

# Places in a header, as C integers.
_LAST_OFFSET_DELTA = BatchHeader._fields.index("last_offset_delta")
_MAX_TIMESTAMP_MS = BatchHeader._fields.index("max_timestamp_ms")
_PRODUCER_ID = BatchHeader._fields.index("producer_id")


class Terms:
    """What holds for appends to one segment under one configuration; all limits are inclusive.

    `was_empty`: the segment had no time to roll by yet, and the terms end with its first batch.
    """

    config: LogConfig
    segment: Segment
    was_empty: bool
    is_ordinary: bool
    max_message_bytes: int
    max_decompressed_bytes: int
    max_index_bytes: int
    requires_key: bool
    before_max_ms: int
    after_max_ms: int
    max_size: int
    max_timestamp_ms: int
    max_offset: int

    def __init__(self, config: LogConfig, segment: Segment) -> None:
        first_ms = segment.first_timestamp_ms()
        self.config = config
        self.segment = segment
        self.was_empty = segment.size == 0
        self.is_ordinary = (
            first_ms >= 0
            and config.compression_type == "producer"
            and config.message_timestamp_type == "CreateTime"
        )
        self.max_message_bytes = config.max_message_bytes
        self.max_decompressed_bytes = max_decompressed_bytes(config)
        self.max_index_bytes = config.segment_index_bytes
        self.requires_key = config.is_compacted
        self.before_max_ms = min(config.message_timestamp_before_max_ms, ENDLESS_MS)
        self.after_max_ms = min(config.message_timestamp_after_max_ms, ENDLESS_MS)
        self.max_size = config.max_segment_bytes
        self.max_timestamp_ms = first_ms + min(config.max_segment_ms, ENDLESS_MS) - segment.roll_jitter_ms
        self.max_offset = segment.base_offset + MAX_RELATIVE_OFFSET


class Appendable(Protocol):
    """What is needed of a partition's log; the terms are kept there."""

    config: LogConfig
    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    log_end_offset: int
    terms: Terms | None


def try_append(
    log: Appendable, records: memoryview, leader_epoch: int, now_ms: int
) -> tuple[int, int] | BatchMetadata | None:
    """Append a client's batch if it is ordinary in every way. OSError if the disk fails.

    The first and last offset that it got, or the earlier append of the same batch.
    """
    segment = log.segments.active
    terms = log.terms
    if terms is None or terms.segment is not segment or terms.config is not log.config:
        terms = log.terms = Terms(log.config, segment)
    size = segment.log.size
    if not terms.is_ordinary or size + len(records) > terms.max_size or records.readonly:
        if terms.was_empty and size > 0:
            log.terms = None
        return None
    if leader_epoch != log.epochs.latest or segment.wants_room(terms.max_index_bytes):
        return None
    fields = accepted_fields(
        records,
        terms.max_message_bytes,
        terms.max_decompressed_bytes,
        terms.requires_key,
        now_ms - terms.before_max_ms,
        now_ms + terms.after_max_ms,
    )
    if fields is None:
        return None
    max_timestamp_ms = fields[_MAX_TIMESTAMP_MS]
    base_offset = log.log_end_offset
    last_offset = base_offset + fields[_LAST_OFFSET_DELTA]
    if max_timestamp_ms > terms.max_timestamp_ms or last_offset > terms.max_offset:
        return None
    has_producer = fields[_PRODUCER_ID] >= 0
    if has_producer:
        header = BatchHeader._make(fields)
        earlier = log.producers.duplicate_of(header)
        if earlier is not None:
            return earlier
        log.producers.check(header)
        header = stamp_one(records, 0, header, base_offset, leader_epoch)
    else:
        stamp(records, 0, base_offset, leader_epoch)
    segment.append(records, base_offset, last_offset, max_timestamp_ms)
    if has_producer:
        log.producers.apply(header)
    else:
        log.producers.end_offset = last_offset + 1
    log.log_end_offset = last_offset + 1
    return base_offset, last_offset
