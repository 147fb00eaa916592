"""What an append needs now and then: batches of coordinators and of the leader, leader epochs, new segments.

Every append itself is in `log_appender.py`, from which this inherits.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.config import LogConfig
from odradek.log.errors import storage_errors
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.leader_epochs import EpochEntry, LeaderEpochs
from odradek.log.partition import earlier_batches
from odradek.log.partition.follower_batches import FollowerBatches, whole_batches
from odradek.log.partition.leader_batches import (
    recompress_all,
    stamp_all,
    stamp_times,
    validate_from_coordinator,
)
from odradek.log.partition.log_appender import AppendInfo, LogAppender
from odradek.log.partition.log_batch import LogBatch
from odradek.log.partition.producer_replay import marker_of, markers_of, replay
from odradek.log.producers.producer_states import BatchMetadata, Marker, ProducerStates
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.segment.roll import IncomingBatches, RollReason, roll_reason
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.records.batch import BatchHeader, Buffer

PRODUCER_ID_EXPIRATION_MS = 86_400_000


class LogWriter(LogAppender):
    """What may be appended to a log, and how; a base class of `PartitionLog`, whose owner is its own."""

    __slots__ = ("_epochs_lock", "producer_id_expiration_ms", "snapshots")

    def __init__(
        self,
        partition: TopicPartition,
        directory: PartitionDirectory,
        config: LogConfig,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        snapshots: SnapshotFiles,
        log_start_offset: int,
        log_end_offset: int,
        producer_id_expiration_ms: int,
    ) -> None:
        super().__init__(
            partition, directory, config, segments, epochs, producers, log_start_offset, log_end_offset
        )
        self.snapshots = snapshots
        self.producer_id_expiration_ms = producer_id_expiration_ms
        # The one thing that two threads may change: a new leader epoch is written where blocking is allowed.
        self._epochs_lock = threading.Lock()

    def _find_in_log(self, header: BatchHeader) -> BatchMetadata | None:
        entry = self.producers.entries.get(header.producer_id)
        if entry is None or not entry.is_from_snapshot:
            return None
        with storage_errors(self.directory.path):
            earlier_batches.complete(entry, self.segments)
        return entry.duplicate_of(header)

    def _append_from_coordinator(
        self, view: memoryview, leader_epoch: int, now_ms: int, transaction_version: int
    ) -> AppendInfo:
        config = self.config
        headers = validate_from_coordinator(view, config)
        view, headers = recompress_all(view, headers, config)
        time_ms = -1
        if config.message_timestamp_type == "LogAppendTime":
            time_ms = now_ms
            headers = stamp_times(view, headers, now_ms)
        markers = self._check_producers(view, headers, transaction_version)
        headers = stamp_all(view, headers, self.log_end_offset, leader_epoch)
        reason = self._append_batches(view, headers, markers, now_ms)
        first, last = headers[0], headers[-1]
        return AppendInfo(
            first.base_offset, last.last_offset, time_ms, self.log_start_offset, roll_reason=reason
        )

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendInfo | None:
        """Append what the leader sent as it is; None if there is no whole batch in it.

        The offsets must continue the log. A fetch may end inside a batch: that rest is left for the next one.
        """
        return self.append_follower_batches(self.check_follower_batches(records), now_ms)

    def check_follower_batches(self, records: Buffer) -> FollowerBatches:
        """The whole batches in what the leader sent, if they continue the log; nothing is changed.

        CorruptBatch or UnexpectedAppendOffset if they may not be appended.
        """
        return whole_batches(records, self.log_end_offset)

    def append_follower_batches(self, found: FollowerBatches, now_ms: int) -> AppendInfo | None:
        """Append batches that were checked at the present log end; None if there are none."""
        batches, payload = found.batches, found.payload
        if not batches:
            return None
        if found.has_markers:
            batches = _with_markers(payload, batches)
        if len(payload) > self.config.max_segment_bytes:
            reason = self._append_one_by_one(payload, batches, now_ms)
        else:
            reason = self._append(payload, batches, found.max_timestamp_ms, now_ms)
        first, last = batches[0], batches[-1]
        return AppendInfo(first.base_offset, last.last_offset, -1, self.log_start_offset, roll_reason=reason)

    def _append_one_by_one(
        self, payload: memoryview, batches: Sequence[LogBatch], now_ms: int
    ) -> RollReason | None:
        """Together they are more than a segment holds."""
        reason, position = None, 0
        for batch in batches:
            part = payload[position : position + batch.size]
            reason = self._append(part, [batch], batch.max_timestamp_ms, now_ms) or reason
            position += batch.size
        return reason

    def _check_producers(
        self, payload: Buffer, headers: Sequence[BatchHeader], transaction_version: int
    ) -> list[Marker | None]:
        markers = markers_of(payload, headers)
        for header, marker in zip(headers, markers, strict=True):
            if marker is not None:
                self.producers.check_marker(header, marker, transaction_version=transaction_version)
                self.producers.void_verification(header, transaction_version)
            elif header.has_producer_id:
                self.producers.check(header, checks_sequence=False)
        return markers

    def _append_batches(
        self,
        payload: Buffer,
        headers: Sequence[BatchHeader],
        markers: Sequence[Marker | None],
        now_ms: int,
    ) -> RollReason | None:
        batches = [
            LogBatch(
                header.base_offset,
                header.last_offset,
                header.size_in_bytes,
                header.max_timestamp_ms,
                header.partition_leader_epoch,
                header if header.has_producer_id else None,
                marker,
            )
            for header, marker in zip(headers, markers, strict=True)
        ]
        return self._append(payload, batches, max(one.max_timestamp_ms for one in batches), now_ms)

    def _undo_append(self, segment: Segment, now_ms: int) -> None:
        """Back to the log end as it was; the batches may be in the log, and some with the producers."""
        if segment.truncate_to(self.log_end_offset):
            self._reload_producers(now_ms)

    def _reload_producers(self, now_ms: int) -> None:
        """State as of the log end, from the newest snapshot and the log."""
        producers = self.snapshots.load(
            self.log_start_offset,
            self.log_end_offset,
            now_ms=now_ms,
            expiration_ms=self.producer_id_expiration_ms,
        )
        replay(self.segments.from_offset(producers.end_offset), producers, self.log_end_offset)
        producers.end_offset = self.log_end_offset
        producers.on_high_watermark(self._hw)
        self.producers = producers

    # Leader epochs

    def _assign_epochs(self, batches: list[LogBatch]) -> None:
        def assign(epochs: LeaderEpochs) -> bool:
            for batch in batches:
                if batch.leader_epoch > epochs.latest:
                    epochs.assign(batch.leader_epoch, batch.base_offset)
            return True

        self._change_epochs(assign)

    def assign_leader_epoch(self, leader_epoch: int, start_offset: int | None = None) -> None:
        """This broker leads from `start_offset` on, by default the log end; written and synced: blocks.

        Any thread, if nothing is appended in an older epoch meanwhile. An append would do it as well; doing
        it when leadership begins spares the first producer the wait.
        """
        if leader_epoch > self.epochs.latest:
            start = self.log_end_offset if start_offset is None else start_offset
            with storage_errors(self.directory.path):
                self._change_epochs(
                    lambda epochs: leader_epoch > epochs.latest and epochs.assign(leader_epoch, start)
                )

    def add_epochs(self, entries: Sequence[EpochEntry], log_end_offset: int) -> None:
        """Write down leader epochs of batches that are to be appended at `log_end_offset`; synced: blocks.

        Any thread. Nothing is written if the log ends elsewhere by now.
        """

        def add(epochs: LeaderEpochs) -> bool:
            if self.log_end_offset != log_end_offset:
                return False
            added = [epochs.assign(*entry) for entry in entries if entry.epoch > epochs.latest]
            return any(added)

        with storage_errors(self.directory.path):
            self._change_epochs(add)

    def adopt_epochs(self, epochs: Iterable[EpochEntry]) -> None:
        """Have the epochs of the log whose copy this is; may block."""
        with storage_errors(self.directory.path), self._epochs_lock:
            self._write_epochs(LeaderEpochs(epochs))

    def _change_epochs(self, change: Callable[[LeaderEpochs], bool]) -> None:
        """Let `change` alter a copy, which counts once it is on the disk; False if it altered nothing."""
        with self._epochs_lock:
            changed = LeaderEpochs(self.epochs)
            if change(changed):
                self._write_epochs(changed)

    def _write_epochs(self, changed: LeaderEpochs) -> None:
        path = self.directory.join(filenames.LEADER_EPOCH_CHECKPOINT)
        self.directory.files.write_file_atomically(path, changed.encode())
        self.epochs = changed

    # Rolling

    def _roll_if_needed(
        self, size: int, batches: list[LogBatch], max_timestamp_ms: int, now_ms: int
    ) -> RollReason | None:
        config = self.config
        reason = roll_reason(
            self.segments.active.facts(config.segment_index_bytes),
            IncomingBatches(size, max_timestamp_ms, batches[-1].last_offset),
            max_segment_bytes=config.max_segment_bytes,
            segment_ms=config.max_segment_ms,
            now_ms=now_ms,
        )
        if reason is not None:
            self._roll(batches[0].base_offset, now_ms)
        return reason

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and open a new one at the log end; an empty one stays as it is."""
        with storage_errors(self.directory.path):
            return self._roll(self.log_end_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        active = self.segments.active
        if active.base_offset == base_offset:
            return active
        active.seal()
        self.producers.end_offset = base_offset
        self.snapshots.write(self.producers)
        segment = self._create_segment(base_offset, now_ms)
        self.segments.add(segment)
        return segment

    def _create_segment(self, base_offset: int, now_ms: int) -> Segment:
        return Segment.create(
            self.directory,
            base_offset,
            index_interval_bytes=self.config.index_interval_bytes,
            now_ms=now_ms,
            roll_jitter_ms=draw_jitter_ms(self.config),
            preallocated_bytes=self.config.max_segment_bytes if self.config.preallocate else 0,
        )


def _with_markers(payload: Buffer, batches: Sequence[LogBatch]) -> list[LogBatch]:
    """The same batches, with what the control batches among them say about transactions."""
    completed, position = [], 0
    for batch in batches:
        header = batch.header
        if header is not None and header.is_control:
            batch = LogBatch(
                batch.base_offset,
                batch.last_offset,
                batch.size,
                batch.max_timestamp_ms,
                batch.leader_epoch,
                header,
                marker_of(payload, position),
            )
        completed.append(batch)
        position += batch.size
    return completed


def draw_jitter_ms(config: LogConfig) -> int:
    """How much earlier than `segment.ms` a segment rolls."""
    limit = min(config.segment_jitter_ms, config.max_segment_ms)
    return random.randrange(limit) if limit > 0 else 0
