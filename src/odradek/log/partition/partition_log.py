"""One partition: what `log_writer.py` appends is read, committed, cut at both ends and brought to the disk.

    log start offset        high watermark            log end offset
          |                       |                         |
    ------+------ committed ------+---- not replicated -----+
          |            |
          |    last stable offset: below it, no transaction is open
    first record that may be read

An offset keeps its record for as long as it has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import encode_partition_metadata
from odradek.log.config import LogConfig
from odradek.log.errors import OffsetOutOfRange, StorageError, storage_errors
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.files.page_cache_state import PageCacheState
from odradek.log.leader_epochs import EpochEnd, LeaderEpochs
from odradek.log.partition import timestamps
from odradek.log.partition.flushing import FlushJob
from odradek.log.partition.leader_batches import max_decompressed_bytes
from odradek.log.partition.log_writer import PRODUCER_ID_EXPIRATION_MS, LogWriter
from odradek.log.partition.reading import FetchData, Isolation, read_log
from odradek.log.partition.retention import Deletion, RetainedSegment, segments_to_delete
from odradek.log.partition.segment_deletion import SegmentDeletion
from odradek.log.producers.producer_states import ProducerStates
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments


class PartitionLog(LogWriter):
    """A partition on disk.

    Owned by the event loop, which is the only one to call what changes it: one writer, no lock. `read` and
    the lookups by time may run in other threads. Methods say so where they may block. A disk error becomes
    `StorageError`; after it the log is as it was before the call, so that a full disk costs nothing but the
    append. Made by `recovery.load_log`, for a new partition too.
    """

    __slots__ = (
        "_leaving",
        "last_flush_ms",
        "page_cache",
        "topic_id",
        "truncation_count",
    )

    def __init__(
        self,
        partition: TopicPartition,
        directory: PartitionDirectory,
        config: LogConfig,
        *,
        segments: Segments,
        epochs: LeaderEpochs,
        producers: ProducerStates,
        snapshots: SnapshotFiles,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        now_ms: int,
        topic_id: UUID | None = None,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        super().__init__(
            partition,
            directory,
            config,
            segments,
            epochs,
            producers,
            snapshots,
            log_start_offset,
            log_end_offset,
            producer_id_expiration_ms,
        )
        self.recovery_point = recovery_point
        self.topic_id = topic_id
        self.last_flush_ms = now_ms
        self._leaving = SegmentDeletion(directory, segments, snapshots)
        self.truncation_count = 0
        self.page_cache = PageCacheState()
        self.update_high_watermark(high_watermark)

    def __repr__(self) -> str:
        return f"PartitionLog({self.partition}, [{self.log_start_offset}, {self.log_end_offset}))"

    # Where the log stands

    @property
    def size_in_bytes(self) -> int:
        """Bytes of log in all segments."""
        return self.segments.size_in_bytes

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Write down which topic the log belongs to, if that was unknown; any thread, blocks."""
        if self.topic_id is None:
            path = self.directory.join(filenames.PARTITION_METADATA)
            with storage_errors(self.directory.path):
                self.directory.files.write_file_atomically(path, encode_partition_metadata(topic_id))
            self.topic_id = topic_id

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        min_one_batch: bool = True,
    ) -> FetchData:
        """Whole batches from the one that holds `offset` on, out of one segment, at most `max_bytes` of them.

        `min_one_batch`: the first batch comes even if it is larger. What may be seen ends as `isolation`
        says. Any thread; may block if the segment is not cached. OffsetOutOfRange outside of the log. In a
        thread other than the owner's a StorageError of ENOENT may be a file that is renamed at that moment.
        """
        return read_log(self, offset, max_bytes, isolation, min_one_batch)

    def offset_for_timestamp(self, timestamp_ms: int) -> timestamps.TimestampedOffset | None:
        """The first record that is as young as that, or younger; any thread, may block."""
        segments = self.segments.from_offset(self.log_start_offset)
        return timestamps.first_at_or_after(
            segments, timestamp_ms, self.log_start_offset, max_decompressed_bytes(self.config)
        )

    def offset_of_max_timestamp(self) -> timestamps.TimestampedOffset | None:
        """The first of the youngest records; None if no record has a time. Any thread, may block."""
        segments = self.segments.from_offset(self.log_start_offset)
        return timestamps.youngest(segments, self.log_start_offset, max_decompressed_bytes(self.config))

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        """Where a leader epoch ended in this log (OffsetForLeaderEpoch)."""
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # Cutting the end

    def truncate_to(self, offset: int, *, now_ms: int) -> bool:
        """Drop everything from `offset` on; False if nothing is there. May block."""
        if offset >= self.log_end_offset:
            # A leader that never wrote in its epoch has left an entry behind the end.
            with storage_errors(self.directory.path):
                self._change_epochs(lambda epochs: epochs.truncate_from_end(self.log_end_offset))
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, now_ms=now_ms)
            return True
        with storage_errors(self.directory.path):
            self.truncation_count += 1
            # From the end backwards: a crash in between leaves a prefix, not a hole.
            self._discard(reversed(self.segments.begun_at_or_after(offset + 1)), now_ms)
            active = self.segments.active
            position = active.position_of(offset)
            if position is not None:
                offset = min(offset, max(active.span_at(position).base_offset, active.base_offset))
                active.truncate_to(offset)
            self._end_at(offset, now_ms)
        return True

    def truncate_fully_and_start_at(
        self, offset: int, *, now_ms: int, log_start_offset: int | None = None
    ) -> None:
        """Drop everything; the next record gets `offset`. May block."""
        with storage_errors(self.directory.path):
            self.truncation_count += 1
            self._discard(reversed(list(self.segments)), now_ms)
            self.snapshots.remove(list(self.snapshots.offsets))
            self.segments.add(self._create_segment(offset, now_ms))
            self.log_start_offset = offset if log_start_offset is None else log_start_offset
            self._change_epochs(lambda epochs: epochs.truncate_from_end(0))
            self._end_at(offset, now_ms)

    def _end_at(self, offset: int, now_ms: int) -> None:
        """After the files were cut: everything else follows."""
        # A closed segment may have become the active one, and is written from now on.
        self.segments.active.log.unshare(self.segments.active.size)
        self.log_end_offset = offset
        self.limits = None
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.snapshots.remove_above(offset)
        self._reload_producers(now_ms)
        self._change_epochs(lambda epochs: epochs.truncate_from_end(offset))
        self.update_high_watermark(self._hw)

    # Cutting the beginning

    def delete_records(self, offset: int) -> int:
        """Make `offset` the first one that may be read (DeleteRecords); the new log start offset.

        OffsetOutOfRange above the high watermark. Files go with the next `enforce_retention`.
        """
        if offset > self.high_watermark:
            raise OffsetOutOfRange(offset, self.log_start_offset, self.high_watermark)
        return self.advance_log_start(offset)

    def advance_log_start(self, offset: int) -> int:
        """Follow the leader's log start offset, or a deletion; it never moves back."""
        if offset > self.log_start_offset:
            self.log_start_offset = min(offset, self.log_end_offset)
            with storage_errors(self.directory.path):
                self._change_epochs(lambda epochs: epochs.truncate_from_start(self.log_start_offset))
            self.update_high_watermark(self._hw)
        return self.log_start_offset

    def enforce_retention(self, now_ms: int) -> Deletion | None:
        """Give up the segments that time, size or the log start offset have made superfluous."""
        segments = list(self.segments)
        ends = [*(segment.base_offset for segment in segments[1:]), self.log_end_offset]
        with storage_errors(self.directory.path):
            deletion = segments_to_delete(
                [
                    RetainedSegment(end, segment.size, segment.largest_timestamp_ms)
                    for segment, end in zip(segments, ends, strict=True)
                ],
                now_ms=now_ms,
                retention_ms=self.config.retention_ms,
                retention_bytes=self.config.retention_bytes,
                log_start_offset=self.log_start_offset,
                high_watermark=self.high_watermark,
                deletes=self.config.deletes,
            )
            if deletion is None:
                return None
            if deletion.segment_count == len(segments):
                self._roll(self.log_end_offset, now_ms)
            self._discard(segments[: deletion.segment_count], now_ms)
        self.advance_log_start(self.segments.first.base_offset)
        return deletion

    def begin_replacement(
        self, old: Sequence[Segment], new: Sequence[Segment], *, now_ms: int
    ) -> Iterator[None]:
        """Put cleaned segments in the place of others; `segment_deletion.py` has the steps."""
        return self._leaving.begin_replacement(old, new, due_ms=now_ms + self.config.file_delete_delay_ms)

    def _discard(self, segments: Iterable[Segment], now_ms: int) -> None:
        self._leaving.discard(segments, due_ms=now_ms + self.config.file_delete_delay_ms)

    def due_garbage(self, now_ms: int) -> list[str]:
        """Files whose time has come; the caller removes them where it may block."""
        return self._leaving.due_garbage(now_ms)

    # To the disk

    def wants_flush(self, now_ms: int) -> bool:
        """Whether `flush.messages`, `flush.ms` or a closed segment ask for a sync."""
        unflushed = self.log_end_offset - self.recovery_point
        if unflushed <= 0:
            return False
        return (
            self.awaits_flush()
            or now_ms - self.last_flush_ms >= self.config.flush_ms
            or self.recovery_point < self.segments.active.base_offset
        )

    def begin_flush(self, now_ms: int) -> FlushJob:
        """Collect what must reach the disk for the recovery point to move to the log end."""
        segments = self.segments.from_offset(self.recovery_point)
        job = FlushJob(
            self.directory.files,
            self.directory.path,
            self.log_end_offset,
            now_ms,
            self.truncation_count,
            syncs_directory=segments[-1].base_offset >= self.recovery_point,
        )
        with storage_errors(self.directory.path):
            for segment in segments:
                segment.write_pending()
                job.handles.extend(file.handle() for file in segment.files())
        return job

    def complete_flush(self, job: FlushJob) -> None:
        """Apply the result of a finished flush, unless the log was truncated since it began."""
        self.last_flush_ms = job.started_ms
        if job.truncation_count == self.truncation_count:
            self.recovery_point = max(self.recovery_point, job.end_offset)

    def flush(self, now_ms: int) -> None:
        """All three steps at once; blocks."""
        job = self.begin_flush(now_ms)
        job.run()
        self.complete_flush(job)

    def give_back_when_idle(self) -> None:
        """Release preallocated space if none came since the last call."""
        try:
            self.segments.active.log.give_back_when_idle()
        except OSError as error:
            raise StorageError(error, self.directory.path) from error

    def close(self, now_ms: int) -> None:
        """Complete indexes, keep producer state, sync, let go of files; the clean stop. Blocks."""
        with storage_errors(self.directory.path):
            self._leaving.finish_replacement()
            self.segments.active.seal()
            self.producers.end_offset = self.log_end_offset
            self.snapshots.write(self.producers)
        self.flush(now_ms)
        self.release()

    def release(self) -> None:
        """Let go of every file handle; a later call would open them again."""
        for segment in self.segments:
            segment.close()
