# cython: annotation_typing=False
"""The tail of a partition's log, and the way of nearly every batch into it: check, stamp, write, index.

What `PartitionLog.append_as_leader` asks for each append (another codec? the broker's time? a new segment?)
has the same answer for thousands of batches. Those answers are kept as `AppendLimits`, and a batch within
them takes this way, at a fraction of the cost. For any other batch it returns None before anything changed.

Compiled by Cython (log_appender.pxd has the C types), or interpreted as is. A base class of the log, so that
nothing lies between an append and the segment.
"""

from __future__ import annotations

from odradek.log.config import LogConfig
from odradek.log.errors import StorageError
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.leader_epochs import LeaderEpochs
from odradek.log.partition.leader_batches import max_decompressed_bytes
from odradek.log.producers.producer_states import BatchMetadata, ProducerStates
from odradek.log.segment.roll import MAX_RELATIVE_OFFSET, RollReason
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.records.batch import HEADER, LOG_OVERHEAD, BatchHeader
from odradek.records.fast_validation import ENDLESS_MS

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import put_int32, put_int64, writable_octets_of
    from cython.cimports.odradek.records.fast_validation import accept
else:
    from odradek.common.byte_access import put_int32, put_int64, writable_octets_of
    from odradek.records.fast_validation import accept

_LOG_OVERHEAD = LOG_OVERHEAD


class AppendInfo:
    """Where batches went. For a duplicate: where they have been since the first time.

    `log_append_time_ms` is -1 when records keep the producer's time.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    is_duplicate: bool
    roll_reason: RollReason | None

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        is_duplicate: bool = False,
        roll_reason: RollReason | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.is_duplicate = is_duplicate
        self.roll_reason = roll_reason

    def _fields(self) -> tuple[object, ...]:
        return (
            self.base_offset,
            self.last_offset,
            self.log_append_time_ms,
            self.log_start_offset,
            self.is_duplicate,
            self.roll_reason,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AppendInfo) and self._fields() == other._fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"AppendInfo{self._fields()}"


class AppendLimits:
    """What holds for appends to one segment, in one leader epoch, under one configuration; limits inclusive.

    `was_empty`: the segment had no time to roll by yet, and the terms end with its first batch.
    """

    config: LogConfig
    segment: Segment
    epochs: LeaderEpochs
    was_empty: bool
    is_ordinary: bool
    leader_epoch: int
    max_message_bytes: int
    max_decompressed_bytes: int
    max_index_bytes: int
    requires_key: bool
    before_max_ms: int
    after_max_ms: int
    max_size: int
    max_timestamp_ms: int
    max_offset: int

    def __init__(self, config: LogConfig, segment: Segment, epochs: LeaderEpochs) -> None:
        first_ms = segment.first_timestamp_ms()
        self.config = config
        self.segment = segment
        self.epochs = epochs
        self.was_empty = segment.size == 0
        self.is_ordinary = (
            first_ms >= 0
            and config.compression_type == "producer"
            and config.message_timestamp_type == "CreateTime"
        )
        self.leader_epoch = epochs.latest
        self.max_message_bytes = config.max_message_bytes
        self.max_decompressed_bytes = max_decompressed_bytes(config)
        self.max_index_bytes = config.segment_index_bytes
        self.requires_key = config.is_compacted
        self.before_max_ms = min(config.message_timestamp_before_max_ms, ENDLESS_MS)
        self.after_max_ms = min(config.message_timestamp_after_max_ms, ENDLESS_MS)
        self.max_size = config.max_segment_bytes
        self.max_timestamp_ms = first_ms + min(config.max_segment_ms, ENDLESS_MS) - segment.roll_jitter_ms
        self.max_offset = segment.base_offset + MAX_RELATIVE_OFFSET


class LogAppender:
    """What an append reads and moves; everything else of a log is in the class that inherits."""

    directory: PartitionDirectory
    config: LogConfig
    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    _hw: int
    terms: AppendLimits | None

    def __init__(
        self,
        directory: PartitionDirectory,
        config: LogConfig,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        self.directory = directory
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = log_start_offset
        self._hw = log_start_offset
        self.terms = None

    @property
    def high_watermark(self) -> int:
        """Everything below it is on every replica in sync."""
        return self._hw

    def awaits_flush(self) -> bool:
        """Whether `flush.messages` records or more are not synced: the last append may not be answered."""
        return bool(self.log_end_offset - self.recovery_point >= self.config.flush_messages)

    def commit_to(self, offset: int) -> None:
        """Move the high watermark forward to an offset of this log, as there is no other replica."""
        if offset > self._hw:
            self._hw = offset
            if self.producers.unreplicated:
                self.producers.on_high_watermark(offset)

    def append_from_client(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendInfo:
        """Like `PartitionLog.append_as_leader`, for what came in a request."""
        try:
            info = self.append_shortly(records, leader_epoch, now_ms)
        except OSError as error:
            raise StorageError(error, self.directory.path) from error
        return self._append_carefully(records, leader_epoch, now_ms) if info is None else info

    def _append_carefully(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendInfo:
        """The long way, which is the heir's."""
        raise NotImplementedError

    def append_shortly(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendInfo | None:
        """Append a client's batch if it is ordinary in every way. OSError if the disk fails."""
        segment = self.segments.active
        terms = self._terms_for(segment)
        size = segment.log.size
        if not terms.is_ordinary or size + len(records) > terms.max_size or records.readonly:
            if terms.was_empty and size > 0:
                self.terms = None
            return None
        if leader_epoch != terms.leader_epoch or segment.wants_room(terms.max_index_bytes):
            return None
        accepted = accept(
            records,
            terms.max_message_bytes,
            terms.max_decompressed_bytes,
            terms.requires_key,
            now_ms - terms.before_max_ms,
            now_ms + terms.after_max_ms,
        )
        if accepted is None:
            return None
        max_timestamp_ms = accepted.max_timestamp_ms
        base_offset = self.log_end_offset
        last_offset = base_offset + accepted.last_offset_delta
        if max_timestamp_ms > terms.max_timestamp_ms or last_offset > terms.max_offset:
            return None
        header = None
        if accepted.producer_id >= 0:
            header = BatchHeader._make(HEADER.unpack_from(records))
            earlier = self.producers.duplicate_of(header)
            if earlier is not None:
                return self._info_of_duplicate(earlier, -1)
            self.producers.check(header)
        # What a leader writes over: no CRC covers it.
        octets = writable_octets_of(records)
        put_int64(octets, 0, base_offset)
        put_int32(octets, _LOG_OVERHEAD, leader_epoch)
        segment.append(records, base_offset, last_offset, max_timestamp_ms)
        if header is not None:
            self.producers.apply(
                header._replace(base_offset=base_offset, partition_leader_epoch=leader_epoch)
            )
        else:
            self.producers.end_offset = last_offset + 1
        self.log_end_offset = last_offset + 1
        return AppendInfo(base_offset, last_offset, -1, self.log_start_offset)

    def _terms_for(self, segment: Segment) -> AppendLimits:
        terms = self.terms
        if (
            terms is None
            or terms.segment is not segment
            or terms.config is not self.config
            or terms.epochs is not self.epochs
        ):
            terms = self.terms = AppendLimits(self.config, segment, self.epochs)
        return terms

    def _info_of_duplicate(self, earlier: BatchMetadata, time_ms: int) -> AppendInfo:
        return AppendInfo(
            earlier.base_offset, earlier.last_offset, time_ms, self.log_start_offset, is_duplicate=True
        )
