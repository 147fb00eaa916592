"""Load a partition's directory: cut a torn tail, rebuild indexes, replay producer state.

    after            what is read
    a clean stop     the end of the last segment; all of a segment whose index is missing or damaged
    any other end    every segment from the recovery point on, batch by batch with CRC

A scan that finds bytes which are no whole batch ends the log there, if that costs nothing committed. If it
would (the end lies below the high watermark, or below the log start offset) nothing is touched and
LogCorrupted says what and where: another replica may have the records, or a person decides.
"""

from __future__ import annotations

import logging
import zlib
from typing import NamedTuple
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import decode_partition_metadata
from odradek.log.config import LogConfig
from odradek.log.errors import DamagedIndex, DamagedPartitionMetadata, LogCorrupted
from odradek.log.files.log_file import STEPS_FROM_BYTES, HandleCache, PartitionDirectory
from odradek.log.leader_epochs import LeaderEpochs, decode_epochs
from odradek.log.partition.log_writer import PRODUCER_ID_EXPIRATION_MS, draw_jitter_ms
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.producer_replay import marker_of, replay
from odradek.log.producers.producer_states import ProducerStates
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.recovery.directory_files import DirectoryFiles, tidy_directory
from odradek.log.recovery.segment_scan import SegmentScan, scan_segment
from odradek.log.segment.batch_chunks import batch_chunks, is_only_room
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.records.batch import CONTROL_FLAG
from odradek.records.errors import RecordsError
from odradek.records.kernels.layout import BatchColumn

logger = logging.getLogger(__name__)


class Checkpoints(NamedTuple):
    """What was known of a partition when its broker stopped; all zero for a new one."""

    recovery_point: int = 0
    high_watermark: int = 0
    log_start_offset: int = 0
    is_clean: bool = False


NEW_PARTITION = Checkpoints()


def load_log(
    partition: TopicPartition,
    path: str,
    config: LogConfig,
    handles: HandleCache,
    *,
    now_ms: int,
    checkpoints: Checkpoints = NEW_PARTITION,
    may_cut_committed: bool = False,
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
) -> PartitionLog:
    """The log in an existing directory, which may be empty; blocks for as long as a scan takes.

    `may_cut_committed`: cut a damaged log even below the high watermark, for `odradek log repair`.
    LogCorrupted otherwise; OSError if the disk fails.
    """
    directory = PartitionDirectory(path, handles)
    try:
        loader = _Loader(partition, directory, config, now_ms, checkpoints, producer_id_expiration_ms)
        return loader.load(may_cut_committed)
    except RecordsError as error:
        # Damage below the recovery point, met while looking for something else.
        raise LogCorrupted(
            partition,
            path,
            error.problem,
            position=error.position,
            valid_end_offset=checkpoints.log_start_offset,
            expected_end_offset=checkpoints.recovery_point,
        ) from error


class _Loader:
    """One loading, step by step; used only by `load_log`, in one thread."""

    def __init__(
        self,
        partition: TopicPartition,
        directory: PartitionDirectory,
        config: LogConfig,
        now_ms: int,
        checkpoints: Checkpoints,
        expiration_ms: int,
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.config = config
        self.now_ms = now_ms
        self.checkpoints = checkpoints
        self.expiration_ms = expiration_ms
        found = tidy_directory(directory)
        self.had_segments = bool(found.segments)
        self.segments = self._open_segments(found)
        self.snapshots = SnapshotFiles(directory, found.snapshots)
        self.epochs, self.epochs_are_known = self._read_epochs()
        first_offset = self.segments.first.base_offset
        self.log_start_offset = max(checkpoints.log_start_offset, first_offset)

    def load(self, may_cut_committed: bool) -> PartitionLog:
        """Everything in order; the end of the log is only cut after it is clear that it may be."""
        damaged = [segment for segment in self.segments if not self._has_good_indexes(segment)]
        to_scan = self._segments_to_scan()
        for segment in damaged:
            if segment not in to_scan:
                self._rebuild_indexes(segment)
        scans, producers = self._scan(to_scan)
        log_end_offset = scans[-1][1].next_offset if scans else self.segments.active.next_offset()
        self._check_committed(scans, log_end_offset, may_cut_committed)
        for segment, scan in scans:
            self._adopt(segment, scan)
        self._drop_after_problem(scans)
        if not self.checkpoints.is_clean and self.segments.active.size >= STEPS_FROM_BYTES:
            self.segments.active.log.give_back_room()
        self._settle_epochs(scans, log_end_offset)
        self.segments.active.log.unshare(self.segments.active.size)
        self.log_start_offset = min(self.log_start_offset, log_end_offset)
        if producers is None:
            producers = self._producers_at(log_end_offset)
        self.snapshots.remove_above(log_end_offset)
        self.snapshots.remove_strays(segment.base_offset for segment in self.segments)
        is_whole = self.checkpoints.is_clean and not scans
        return PartitionLog(
            self.partition,
            self.directory,
            self.config,
            segments=self.segments,
            epochs=self.epochs,
            producers=producers,
            snapshots=self.snapshots,
            log_start_offset=self.log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=log_end_offset if is_whole else self._recovery_point(log_end_offset),
            high_watermark=self.checkpoints.high_watermark,
            now_ms=self.now_ms,
            topic_id=self._read_topic_id(),
            producer_id_expiration_ms=self.expiration_ms,
        )

    def _recovery_point(self, log_end_offset: int) -> int:
        return min(self.checkpoints.recovery_point, log_end_offset)

    def _open_segments(self, found: DirectoryFiles) -> Segments:
        interval = self.config.index_interval_bytes
        if not found.segments:
            base_offset = self.checkpoints.log_start_offset
            empty = Segment.create(
                self.directory,
                base_offset,
                index_interval_bytes=interval,
                now_ms=self.now_ms,
                roll_jitter_ms=draw_jitter_ms(self.config),
            )
            return Segments([empty])
        return Segments(
            Segment(
                self.directory,
                base_offset,
                index_interval_bytes=interval,
                created_ms=self.now_ms,
                sizes=sizes,
                roll_jitter_ms=draw_jitter_ms(self.config),
            )
            for base_offset, sizes in found.segments.items()
        )

    # What must be scanned

    def _segments_to_scan(self) -> list[Segment]:
        if not self.checkpoints.is_clean:
            return self.segments.from_offset(self.checkpoints.recovery_point)
        active = self.segments.active
        try:
            active.next_offset()
        except RecordsError as error:
            logger.warning("%s: damaged after a clean stop: %s", active.log.path, error)
            return [active]
        return []

    def _has_good_indexes(self, segment: Segment) -> bool:
        files = self.directory.files
        indexes = (segment.offset_index.file, segment.time_index.file)
        if not all(files.exists(file.path) for file in indexes):
            return False
        try:
            segment.offset_index.check_shape(segment.size)
            segment.time_index.check_shape()
            segment.txn_index.check(segment.base_offset)
        except DamagedIndex as error:
            logger.warning("%s; it is rebuilt", error)
            return False
        return segment.txn_index.is_created or not self._lacks_txn_index(segment)

    def _lacks_txn_index(self, segment: Segment) -> bool:
        """Whether a missing transaction index is a loss: only looked into where there are transactions."""
        if not any(other.txn_index.is_created for other in self.segments):
            return False
        for chunk in batch_chunks(segment.log):
            for index, bits in enumerate(chunk.column(BatchColumn.ATTRIBUTES)):
                if bits & CONTROL_FLAG:
                    marker = marker_of(chunk.buffer, chunk.position(index))
                    if marker is not None and not marker.is_commit:
                        return True
        return False

    def _rebuild_indexes(self, segment: Segment) -> None:
        producers = self._producers_at(segment.base_offset)
        scan = scan_segment(segment, checks_crc=False, producers=producers)
        if scan.problem is not None:
            # Below the recovery point: not ours to cut. What can be indexed is indexed.
            logger.error("%s: byte %d: %s", segment.log.path, scan.valid_size, scan.problem)
        self._write_indexes(segment, scan)

    # Scanning

    def _scan(
        self, segments: list[Segment]
    ) -> tuple[list[tuple[Segment, SegmentScan]], ProducerStates | None]:
        if not segments:
            return [], None
        producers = self._producers_at(segments[0].base_offset)
        self.snapshots.remove_torn(segments[0].base_offset)
        scans: list[tuple[Segment, SegmentScan]] = []
        for segment in segments:
            allows_gaps = self.config.is_compacted or any(scan.shows_compaction for _, scan in scans)
            scan = scan_segment(
                segment,
                allows_gaps=allows_gaps,
                epochs=self.epochs if self.epochs_are_known else None,
                log_start_offset=self.log_start_offset,
                producers=producers,
            )
            scans.append((segment, scan))
            following = self.segments.after(segment)
            if following is None or scan.problem is not None:
                break
            scan.problem = _problem_between(scan, following, allows_gaps)
            if scan.problem is not None:
                break
            producers.end_offset = following.base_offset
            self.snapshots.write(producers)
        producers.end_offset = scans[-1][1].next_offset
        return scans, producers

    def _producers_at(self, offset: int) -> ProducerStates:
        producers = self.snapshots.load(
            self.log_start_offset, offset, now_ms=self.now_ms, expiration_ms=self.expiration_ms
        )
        if producers.end_offset < offset:
            replay(self.segments.from_offset(producers.end_offset), producers, offset)
        producers.end_offset = offset
        return producers

    def _check_committed(
        self, scans: list[tuple[Segment, SegmentScan]], log_end_offset: int, may_cut_committed: bool
    ) -> None:
        """LogCorrupted, before anything is cut, if committed records are damaged or missing."""
        segment = scans[-1][0] if scans else self.segments.active
        problem = scans[-1][1].problem if scans else None
        position = scans[-1][1].valid_size if scans else segment.size
        expected = max(self.checkpoints.high_watermark, self.checkpoints.log_start_offset)
        is_old_format = problem is not None and _holds_old_message(segment, position)
        if is_old_format:
            problem = "a message of format 0 or 1, which only Kafka before 4.0 reads"
        if not is_old_format and (log_end_offset >= expected or may_cut_committed):
            return
        raise LogCorrupted(
            self.partition,
            segment.log.path,
            problem or "the file ends early",
            position=position,
            valid_end_offset=log_end_offset,
            expected_end_offset=expected,
        )

    # Settling

    def _adopt(self, segment: Segment, scan: SegmentScan) -> None:
        if scan.valid_size < segment.size:
            is_room = is_only_room(segment.log, scan.valid_size)
            logger.log(
                logging.INFO if is_room else logging.WARNING,
                "%s: byte %d: %s; cut, the log ends at offset %d",
                segment.log.path,
                scan.valid_size,
                "only space for records behind it" if is_room else scan.problem,
                scan.next_offset,
            )
            segment.log.truncate(scan.valid_size)
        self._write_indexes(segment, scan)

    def _write_indexes(self, segment: Segment, scan: SegmentScan) -> None:
        segment.replace_indexes(scan.offset_entries, scan.time_entries, scan.greatest)
        segment.time_index.append_if_later(*scan.greatest)
        segment.write_pending()
        segment.txn_index.clear()
        for aborted in scan.aborted:
            segment.txn_index.append(aborted)

    def _drop_after_problem(self, scans: list[tuple[Segment, SegmentScan]]) -> None:
        if not scans or scans[-1][1].problem is None:
            return
        later = self.segments.begun_at_or_after(scans[-1][0].base_offset + 1)
        for segment in reversed(later):
            logger.warning("%s: deleted, because an earlier segment was truncated", segment.log.path)
            segment.close()
            for file in segment.files():
                self.directory.files.remove(file.path)
        self.segments.remove(later)

    def _settle_epochs(self, scans: list[tuple[Segment, SegmentScan]], log_end_offset: int) -> None:
        before = self.epochs.encode()
        if not self.epochs_are_known:
            scanned = {id(segment): scan for segment, scan in scans}
            for segment in self.segments:
                scan = scanned.get(id(segment)) or scan_segment(segment, checks_crc=False)
                self._learn_epochs(scan)
        for _, scan in scans:
            self._learn_epochs(scan)
        self.epochs.truncate_from_end(log_end_offset)
        self.epochs.truncate_from_start(min(self.log_start_offset, log_end_offset))
        if self.epochs.encode() != before or not self.epochs_are_known:
            path = self.directory.join(filenames.LEADER_EPOCH_CHECKPOINT)
            self.directory.files.write_file_atomically(path, self.epochs.encode())

    def _learn_epochs(self, scan: SegmentScan) -> None:
        for entry in scan.epochs:
            if entry.epoch > self.epochs.latest:
                self.epochs.assign(entry.epoch, entry.start_offset)

    def _read_epochs(self) -> tuple[LeaderEpochs, bool]:
        """The epochs, and whether the file is valid; if not, they are read from the batches."""
        path = self.directory.join(filenames.LEADER_EPOCH_CHECKPOINT)
        try:
            content = self.directory.files.read_file(path)
            return LeaderEpochs(decode_epochs(content)), True
        except FileNotFoundError:
            return LeaderEpochs(), not self.had_segments
        except ValueError as error:
            logger.warning("%s: %s; the epochs are read from the log", path, error)
            return LeaderEpochs(), False

    def _read_topic_id(self) -> UUID | None:
        path = self.directory.join(filenames.PARTITION_METADATA)
        try:
            return decode_partition_metadata(self.directory.files.read_file(path))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DamagedPartitionMetadata(self.partition, self.directory.path, str(error)) from error


def _problem_between(scan: SegmentScan, following: Segment, allows_gaps: bool) -> str | None:
    """What is wrong between the end of a segment and the next one, if the log was never compacted."""
    if scan.next_offset > following.base_offset:
        return f"its end {scan.next_offset} overlaps the segment at {following.base_offset}"
    if scan.next_offset < following.base_offset and not (allows_gaps or scan.shows_compaction):
        return f"it ends at {scan.next_offset}, before the segment at {following.base_offset}"
    return None


def _holds_old_message(segment: Segment, position: int) -> bool:
    """Whether an intact message of Kafka's formats before 0.11 begins here: not damage, but not for us."""
    head = segment.log.read(position, 17)
    if len(head) < 17 or head[16] not in (0, 1):
        return False
    size = int.from_bytes(head[8:12], "big", signed=True)
    if not 14 <= size <= segment.size - position - 12:
        return False
    message = segment.log.read(position + 12, size)
    return zlib.crc32(message[4:]) == int.from_bytes(message[:4], "big")
