# cython: annotation_typing=False
"""How batches enter the log of a partition: validated once, numbered, stamped, written, indexed.

Compiled by Cython (log_appender.pxd has the C types), or interpreted as is. A base class of the log, so that
nothing lies between an append and the segment. What happens rarely is in `log_writer.py`.
"""

from __future__ import annotations

from typing import Any

import cython

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.errors import OutOfOrderSequence, RecordListTooLarge, StorageError
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.leader_epochs import LeaderEpochs
from odradek.log.partition.leader_batches import (
    Origin,
    max_decompressed_bytes,
    recompress,
    stored_codec,
    validate_from_client,
    writable_view,
)
from odradek.log.partition.log_batch import LogBatch
from odradek.log.producers.producer_states import BatchMetadata, ProducerStates
from odradek.log.segment.roll import MAX_RELATIVE_OFFSET, RollReason
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.log.segment.txn_index import aborted_txn
from odradek.records.batch import (
    CODEC_MASK,
    HEADER,
    LOG_OVERHEAD,
    BatchHeader,
    Buffer,
    stamp_log_append_time,
)
from odradek.records.fast_validation import ENDLESS_MS, ValidBatch

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import put_int32, put_int64, writable_raw_bytes
    from cython.cimports.odradek.records.fast_validation import accept
else:
    from odradek.common.byte_access import put_int32, put_int64, writable_raw_bytes
    from odradek.records.fast_validation import accept

_LOG_OVERHEAD = LOG_OVERHEAD
_CODEC_MASK = CODEC_MASK
_CLIENT = Origin.CLIENT
_ALWAYS, _NEVER = -(2**63), 2**63 - 1


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
    """What the configuration, the active segment and the leader epoch allow; kept until one of them changes.

    Limits are inclusive. A batch beyond `max_size`, `max_timestamp_ms` or `max_offset` may need a new
    segment. `was_empty`: the segment had no batch, and so no time to roll by yet.
    """

    config: LogConfig
    segment: Segment
    epochs: LeaderEpochs
    was_empty: bool
    leader_epoch: int
    codec: int
    keeps_times: bool
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
        self.config = config
        self.segment = segment
        self.epochs = epochs
        self.was_empty = segment.size == 0
        self.leader_epoch = epochs.latest
        self.codec = stored_codec(config)
        self.keeps_times = config.message_timestamp_type == "CreateTime"
        self.max_message_bytes = config.max_message_bytes
        self.max_decompressed_bytes = max_decompressed_bytes(config)
        self.max_index_bytes = config.segment_index_bytes
        self.requires_key = config.is_compacted
        self.before_max_ms = min(config.message_timestamp_before_max_ms, ENDLESS_MS)
        self.after_max_ms = min(config.message_timestamp_after_max_ms, ENDLESS_MS)
        self.max_size = config.max_segment_bytes
        self.max_timestamp_ms = _latest_ms(config, segment)
        self.max_offset = segment.base_offset + MAX_RELATIVE_OFFSET


def _latest_ms(config: LogConfig, segment: Segment) -> int:
    """The timestamp up to which a segment need not roll for its age."""
    if segment.size == 0:
        return _NEVER
    first_ms = segment.first_timestamp_ms()
    if first_ms < 0:
        return _ALWAYS  # it rolls by the clock
    return first_ms + min(config.max_segment_ms, ENDLESS_MS) - segment.roll_jitter_ms


class LogAppender:
    """What an append reads and moves; everything else of a log is in the class that inherits."""

    partition: TopicPartition
    directory: PartitionDirectory
    config: LogConfig
    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStates
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    _hw: int
    limits: AppendLimits | None

    def __init__(
        self,
        partition: TopicPartition,
        directory: PartitionDirectory,
        config: LogConfig,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        log_start_offset: int,
        log_end_offset: int,
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.config = config
        self.segments = segments
        self.epochs = epochs
        self.producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = log_start_offset
        self._hw = log_start_offset
        self.limits = None

    # Where the log stands

    @property
    def high_watermark(self) -> int:
        """Everything below it is on every replica in sync."""
        return self._hw

    @property
    def last_stable_offset(self) -> int:
        """Everything below it is committed and belongs to no open transaction."""
        return self.stable_offset()

    def stable_offset(self) -> int:
        """`last_stable_offset`, as compiled code asks for it."""
        producers = self.producers
        if not producers.ongoing and not producers.unreplicated:
            return self._hw
        first_unstable = producers.first_unstable_offset
        return self._hw if first_unstable is None else min(self._hw, first_unstable)

    def awaits_flush(self) -> bool:
        """Whether `flush.messages` records or more are not synced: the last append may not be answered."""
        return bool(self.log_end_offset - self.recovery_point >= self.config.flush_messages)

    def commit_to(self, offset: int) -> None:
        """Move the high watermark forward to an offset of this log, as there is no other replica."""
        if offset > self._hw:
            self._hw = offset
            if self.producers.unreplicated:
                self.producers.on_high_watermark(offset)

    def update_high_watermark(self, offset: int) -> int:
        """Move it to `offset`, as far as that lies inside the log; where it is then."""
        self._hw = min(max(offset, self.log_start_offset), self.log_end_offset)
        self.producers.on_high_watermark(self._hw)
        return self._hw

    # Appending

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Check batches, give them the next offsets, and append them.

        A writable buffer is stamped in place. RecordsError, or one of the errors of `log.errors`, if the
        batches are refused; then nothing has changed.
        """
        if not isinstance(records, memoryview) or records.readonly:
            records = writable_view(records)
        if origin is _CLIENT:
            return self._append_from_client(records, leader_epoch, now_ms)
        return self._append_from_coordinator(records, leader_epoch, now_ms, transaction_version)

    def _append_from_client(self, view: memoryview, leader_epoch: int, now_ms: int) -> AppendInfo:
        """The one batch that a producer may send at a time."""
        limits = self._current_limits()
        batch = self._validate(view, limits, now_ms)
        header = None
        if batch.producer_id >= 0:
            header = BatchHeader._make(HEADER.unpack_from(view))
            earlier = self.producers.duplicate_of(header)
            if earlier is None:
                earlier = self._check_sequence(header)
            if earlier is not None:
                return self._info_of_duplicate(earlier, -1 if limits.keeps_times else earlier.timestamp_ms)
        max_timestamp_ms = batch.max_timestamp_ms
        log_append_time_ms = -1
        if limits.codec >= 0 and batch.attributes & _CODEC_MASK != limits.codec:
            max_timestamp_ms = batch.greatest_ms
            view = recompress(view, batch.plain or b"", max_timestamp_ms, limits.config)
        if not limits.keeps_times:
            max_timestamp_ms = log_append_time_ms = now_ms
            stamp_log_append_time(view, 0, now_ms)
        base_offset = self.log_end_offset
        last_offset = base_offset + batch.last_offset_delta
        # What a leader writes over: no CRC covers it.
        raw = writable_raw_bytes(view)
        put_int64(raw, 0, base_offset)
        put_int32(raw, _LOG_OVERHEAD, leader_epoch)
        if header is not None:
            header = BatchHeader._make(HEADER.unpack_from(view))
        size = len(view)
        batches = [LogBatch(base_offset, last_offset, size, max_timestamp_ms, leader_epoch, header)]
        reason = self._append(view, batches, max_timestamp_ms, now_ms)
        return AppendInfo(base_offset, last_offset, log_append_time_ms, self.log_start_offset, False, reason)

    def _check_sequence(self, header: BatchHeader) -> BatchMetadata | None:
        """Raise if a producer may not append this batch; the earlier append if only the log has it."""
        try:
            self.producers.check(header)
        except OutOfOrderSequence:
            earlier = self._find_in_log(header)
            if earlier is None:
                raise
            return earlier
        return None

    def _validate(self, view: memoryview, limits: AppendLimits, now_ms: int) -> ValidBatch:
        """The batch, checked once if it is valid; else the error that names what is wrong."""
        batch = accept(
            view,
            limits.max_message_bytes,
            limits.max_decompressed_bytes,
            limits.requires_key,
            limits.keeps_times,
            now_ms - limits.before_max_ms,
            now_ms + limits.after_max_ms,
            limits.codec,
        )
        return validate_from_client(view, limits.config, now_ms, self.partition) if batch is None else batch

    def _current_limits(self) -> AppendLimits:
        try:
            return self._limits_for(self.segments.active)
        except OSError as error:
            raise StorageError(error, self.directory.path) from error

    def _limits_for(self, segment: Any) -> AppendLimits:
        limits = self.limits
        if (
            limits is None
            or limits.segment is not segment
            or limits.config is not self.config
            or limits.epochs is not self.epochs
            or (limits.was_empty and segment.log.size > 0)
        ):
            limits = self.limits = AppendLimits(self.config, segment, self.epochs)
        return limits

    def _append(
        self, payload: Buffer, batches: list[LogBatch], max_timestamp_ms: int, now_ms: int
    ) -> RollReason | None:
        """Write batches that continue the log, by one write; why a new segment was begun for them."""
        last = batches[-1]
        size = len(payload)
        reason = None
        try:
            segment = self.segments.active
            limits = self._limits_for(segment)
            if size > limits.max_size:
                raise RecordListTooLarge(size, limits.max_size)
            if last.leader_epoch > limits.leader_epoch:
                self._assign_epochs(batches)
            if (
                segment.log.size > limits.max_size - size
                or max_timestamp_ms > limits.max_timestamp_ms
                or last.last_offset > limits.max_offset
                or segment.wants_room(limits.max_index_bytes)
            ):
                reason = self._roll_if_needed(size, batches, max_timestamp_ms, now_ms)
                segment = self.segments.active
                segment.make_room()
            self._write(segment, payload, batches, now_ms)
        except OSError as error:
            raise StorageError(error, self.directory.path) from error
        self.log_end_offset = last.last_offset + 1
        return reason

    def _write(self, segment: Any, payload: Buffer, batches: list[LogBatch], now_ms: int) -> None:
        try:
            position = segment.log.append(payload)
            for batch in batches:
                segment.note(
                    position, batch.size, batch.base_offset, batch.last_offset, batch.max_timestamp_ms
                )
                position += batch.size
                if batch.header is not None:
                    completed = self.producers.apply(batch.header, batch.marker)
                    if completed is not None and completed.is_aborted:
                        segment.append_aborted(aborted_txn(completed))
                self.producers.end_offset = batch.last_offset + 1
        except OSError:
            self._undo_append(segment, now_ms)
            raise

    def _info_of_duplicate(self, earlier: BatchMetadata, time_ms: int) -> AppendInfo:
        return AppendInfo(
            earlier.base_offset, earlier.last_offset, time_ms, self.log_start_offset, is_duplicate=True
        )

    # What happens rarely; defined in `log_writer.py`

    def _find_in_log(self, header: BatchHeader) -> BatchMetadata | None:
        """The earlier append of a batch, if its producer's state comes from a snapshot."""
        raise NotImplementedError

    def _append_from_coordinator(
        self, view: memoryview, leader_epoch: int, now_ms: int, transaction_version: int
    ) -> AppendInfo:
        """Several batches, control batches among them."""
        raise NotImplementedError

    def _assign_epochs(self, batches: list[LogBatch]) -> None:
        """Write down leader epochs that begin with these batches."""
        raise NotImplementedError

    def _roll_if_needed(
        self, size: int, batches: list[LogBatch], max_timestamp_ms: int, now_ms: int
    ) -> RollReason | None:
        """Begin a new segment if the active one cannot take these batches."""
        raise NotImplementedError

    def _undo_append(self, segment: Segment, now_ms: int) -> None:
        """Restore the log end as it was before a write that failed."""
        raise NotImplementedError
