"""The writing end of a partition: batches checked, stamped and appended; leader epochs; segments rolled.

The way of nearly every append is in `log_appender.py`, of which this is an heir; here is that of all others.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence

from odradek.log import filenames
from odradek.log.config import LogConfig
from odradek.log.errors import RecordListTooLarge, StorageError, storage_errors
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.leader_epochs import EpochEntry, LeaderEpochs
from odradek.log.partition.follower_batches import whole_batches
from odradek.log.partition.leader_batches import Origin, prepare, stamp_all
from odradek.log.partition.log_appender import AppendInfo, LogAppender
from odradek.log.partition.producer_replay import markers_of, replay
from odradek.log.producers.producer_states import Marker, ProducerStates
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.segment.roll import IncomingBatches, RollReason, roll_reason
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.log.segment.txn_index import aborted_txn
from odradek.records.batch import BatchHeader, Buffer

PRODUCER_ID_EXPIRATION_MS = 86_400_000


class LogWriter(LogAppender):
    """What may be appended to a log, and how; a base class of `PartitionLog`, whose owner is its own."""

    __slots__ = ("_epochs_lock", "producer_id_expiration_ms", "snapshots")

    def __init__(
        self,
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
        super().__init__(directory, config, segments, epochs, producers, log_start_offset, log_end_offset)
        self.snapshots = snapshots
        self.producer_id_expiration_ms = producer_id_expiration_ms
        # The one thing that two threads may change: a new leader epoch is written where blocking is allowed.
        self._epochs_lock = threading.Lock()

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        *,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Check batches, give them the next offsets, and append them.

        A writable buffer is stamped in place. RecordsError, or one of the errors of `log.errors`, if the
        batches are refused; then nothing has changed.
        """
        if origin is Origin.CLIENT and isinstance(records, memoryview):
            return self.append_from_client(records, leader_epoch, now_ms)
        return self._append_carefully(records, leader_epoch, now_ms, origin, transaction_version)

    def _append_carefully(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        payload, headers = prepare(records, self.config, now_ms=now_ms, origin=origin)
        time_ms = now_ms if self.config.message_timestamp_type == "LogAppendTime" else -1
        markers = None  # nor anything else to note about a producer
        if origin is not Origin.CLIENT or headers[0].producer_id >= 0:
            earlier = self.producers.duplicate_of(headers[0]) if origin is Origin.CLIENT else None
            if earlier is not None:
                time_ms = earlier.timestamp_ms if time_ms >= 0 else -1
                return self._info_of_duplicate(earlier, time_ms)
            markers = self._check_producers(payload, headers, origin, transaction_version)
        headers = stamp_all(payload, headers, self.log_end_offset, leader_epoch)
        reason = self._append(payload, headers, markers, now_ms)
        first, last = headers[0], headers[-1]
        return AppendInfo(
            first.base_offset, last.last_offset, time_ms, self.log_start_offset, roll_reason=reason
        )

    def append_as_follower(self, records: Buffer, *, now_ms: int) -> AppendInfo | None:
        """Append what the leader sent as it is; None if there is no whole batch in it.

        The offsets must continue the log. A fetch may end inside a batch: that rest is left for the next one.
        """
        payload, headers = whole_batches(records, self.log_end_offset)
        if not headers:
            return None
        markers = markers_of(payload, headers)
        reason = self._append(payload, headers, markers, now_ms)
        first, last = headers[0], headers[-1]
        return AppendInfo(first.base_offset, last.last_offset, -1, self.log_start_offset, roll_reason=reason)

    def _check_producers(
        self, payload: Buffer, headers: Sequence[BatchHeader], origin: Origin, transaction_version: int
    ) -> list[Marker | None]:
        markers = markers_of(payload, headers)
        for header, marker in zip(headers, markers, strict=True):
            if marker is not None:
                self.producers.check_marker(header, marker, transaction_version=transaction_version)
            elif header.has_producer_id:
                self.producers.check(header, checks_sequence=origin is Origin.CLIENT)
        return markers

    def _append(
        self,
        payload: Buffer,
        headers: Sequence[BatchHeader],
        markers: Sequence[Marker | None] | None,
        now_ms: int,
    ) -> RollReason | None:
        if len(payload) > self.config.max_segment_bytes:
            raise RecordListTooLarge(len(payload), self.config.max_segment_bytes)
        last = headers[-1]
        try:
            if last.partition_leader_epoch > self.epochs.latest:
                self._assign_epochs(headers)
            reason = self._roll_if_needed(len(payload), headers, now_ms)
            segment = self.segments.active
            segment.make_room()
            self._write(segment, payload, headers, markers, now_ms)
        except OSError as error:
            raise StorageError(error, self.directory.path) from error
        self.log_end_offset = last.next_offset
        return reason

    def _write(
        self,
        segment: Segment,
        payload: Buffer,
        headers: Sequence[BatchHeader],
        markers: Sequence[Marker | None] | None,
        now_ms: int,
    ) -> None:
        try:
            segment.append_batches(payload, headers)
            if markers is None:
                self.producers.end_offset = headers[-1].next_offset
                return
            for header, marker in zip(headers, markers, strict=True):
                completed = self.producers.apply(header, marker)
                if completed is not None and completed.is_aborted:
                    segment.append_aborted(aborted_txn(completed))
        except OSError:
            self._undo_append(segment, now_ms)
            raise

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

    def _assign_epochs(self, headers: Sequence[BatchHeader]) -> None:
        def assign(epochs: LeaderEpochs) -> bool:
            for header in headers:
                if header.partition_leader_epoch > epochs.latest:
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
            return True

        self._change_epochs(assign)

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """This broker leads from the log end on; written and synced, so it may block. Any thread.

        An append would do it as well (SPEC I2); doing it when leadership begins spares the first producer
        the wait.
        """
        if leader_epoch > self.epochs.latest:
            with storage_errors(self.directory.path):
                self._change_epochs(
                    lambda epochs: (
                        leader_epoch > epochs.latest and epochs.assign(leader_epoch, self.log_end_offset)
                    )
                )

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

    def _roll_if_needed(self, size: int, headers: Sequence[BatchHeader], now_ms: int) -> RollReason | None:
        config = self.config
        max_timestamp_ms = headers[0].max_timestamp_ms
        if len(headers) > 1:
            max_timestamp_ms = max(header.max_timestamp_ms for header in headers)
        reason = roll_reason(
            self.segments.active.facts(config.segment_index_bytes),
            IncomingBatches(size, max_timestamp_ms, headers[-1].last_offset),
            max_segment_bytes=config.max_segment_bytes,
            segment_ms=config.max_segment_ms,
            now_ms=now_ms,
        )
        if reason is not None:
            self._roll(headers[0].base_offset, now_ms)
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


def draw_jitter_ms(config: LogConfig) -> int:
    """How much earlier than `segment.ms` a segment rolls."""
    limit = min(config.segment_jitter_ms, config.max_segment_ms)
    return random.randrange(limit) if limit > 0 else 0
