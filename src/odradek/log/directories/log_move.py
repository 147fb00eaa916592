"""Moves a log to another directory (AlterReplicaLogDirs) while it is served.

LogManager.begin_move        the owner of the logs: begins a copy, named `<partition>.<hex>-future`
move.prepare, copy_some,     a pool's thread, one call at a time: they block
     settle
move.is_ready_after_rest     the owner: copies the last few batches, so that nothing is appended in between
LogManager.complete_move     the owner: the copy is served from now on; the old directory is deleted

A crash at any time leaves the old directory, or both with the same records. The next start discards an
unfinished copy, and the move begins again.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from odradek.log import filenames
from odradek.log.checkpoints import encode_partition_metadata
from odradek.log.errors import OffsetOutOfRange, StorageError
from odradek.log.files.log_file import HandleCache
from odradek.log.partition.reading import FetchData, Isolation
from odradek.log.recovery.log_loader import Checkpoints, load_log
from odradek.records.batch import read_header

if TYPE_CHECKING:
    from odradek.log.directories.log_directory import LogDirectory
    from odradek.log.partition.partition_log import PartitionLog

CHUNK_BYTES = 1 << 20


class LogMove:
    """One log and its copy. Made by the LogManager; the table above says which thread may call what."""

    __slots__ = ("_handles", "_truncation_count", "copy", "directory", "path", "source")

    def __init__(
        self, source: PartitionLog, directory: LogDirectory, path: str, handles: HandleCache
    ) -> None:
        self.source = source
        self.directory = directory
        self.path = path
        self.copy: PartitionLog | None = None
        self._handles = handles
        self._truncation_count = source.truncation_count

    @property
    def size_in_bytes(self) -> int:
        """Bytes copied."""
        return self.copy.size_in_bytes if self.copy is not None else 0

    @property
    def offset_lag(self) -> int:
        """How many offsets the copy is behind."""
        end = self.copy.log_end_offset if self.copy is not None else self.source.log_start_offset
        return max(self.source.log_end_offset - end, 0)

    # In a pool's thread

    def prepare(self, now_ms: int) -> None:
        """Create the directory of the copy; blocks. OSError if the disk fails."""
        files, source = self._handles.files, self.source
        files.make_directory(self.path)
        files.sync_directory(self.directory.path)
        if source.topic_id is not None:
            metadata = f"{self.path}/{filenames.PARTITION_METADATA}"
            files.write_file_atomically(metadata, encode_partition_metadata(source.topic_id))
        self.copy = load_log(
            source.partition,
            self.path,
            source.config,
            self._handles,
            now_ms=now_ms,
            checkpoints=Checkpoints(log_start_offset=self._first_offset()),
            producer_id_expiration_ms=source.producer_id_expiration_ms,
        )

    def copy_some(self, now_ms: int, max_bytes: int = CHUNK_BYTES) -> int:
        """Copy the next batches; the number of bytes, 0 when all is copied. Blocks."""
        copy = self._copy()
        if self._truncation_count != self.source.truncation_count:
            # Truncated records may have been copied; others may have the same offsets now.
            self._start_over(now_ms)
        try:
            fetched = self._read_source(copy.log_end_offset, max_bytes)
        except OffsetOutOfRange:
            self._start_over(now_ms)
            return self.copy_some(now_ms, max_bytes)
        if fetched.range is None:
            return 0
        batches = fetched.range.read()
        copy.append_as_follower(batches, now_ms=now_ms)
        return len(batches)

    def settle(self, now_ms: int) -> None:
        """Sync the copy to disk, and give it the log's start offset and epochs. Blocks."""
        copy, source = self._copy(), self.source
        copy.advance_log_start(source.log_start_offset)
        if list(copy.epochs) != list(source.epochs):
            copy.adopt_epochs(source.epochs)
        copy.flush(now_ms)

    def _start_over(self, now_ms: int) -> None:
        self._truncation_count = self.source.truncation_count
        self._copy().truncate_fully_and_start_at(self._first_offset(), now_ms=now_ms)

    def _first_offset(self) -> int:
        """Base offset of the batch that has the log start offset: batches are copied whole."""
        start = self.source.log_start_offset
        fetched = self._read_source(start, 1)
        if fetched.range is None:
            return start
        return min(start, read_header(fetched.range.read()).base_offset)

    def _read_source(self, offset: int, max_bytes: int) -> FetchData:
        try:
            return self.source.read(offset, max_bytes, isolation=Isolation.LOG_END)
        except StorageError as error:
            if error.errno != errno.ENOENT:
                raise
            # Compaction or retention has renamed the file before it was opened.
            return self.source.read(offset, max_bytes, isolation=Isolation.LOG_END)

    # By the owner of the logs

    def is_ready_after_rest(self, now_ms: int) -> bool:
        """Copy the rest if it is small; whether the copy now equals the log."""
        source, copy = self.source, self._copy()
        self.copy_some(now_ms)
        return (
            copy.log_end_offset == source.log_end_offset
            and copy.log_start_offset == source.log_start_offset
            and self._truncation_count == source.truncation_count
            and list(copy.epochs) == list(source.epochs)
        )

    def take_over(self) -> PartitionLog:
        """The copy with the log's state in memory: it is the log from now on."""
        source, copy = self.source, self._copy()
        copy.config = source.config
        copy.producers = source.producers
        copy.update_high_watermark(source.high_watermark)
        return copy

    def _copy(self) -> PartitionLog:
        assert self.copy is not None, "call `prepare` first"
        return self.copy
