"""Syncs a log to disk in three steps, so that the slow one can run in a pool.

job = log.begin_flush(now_ms)      the owner: collects open files, writes pending index entries
job.run()                          any thread: fsync, may take long
log.complete_flush(job)            the owner: advances the recovery point to where the job began
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.log.errors import StorageError
from odradek.log.files.file_system import FileSystem, OpenFile


@dataclass(frozen=True, slots=True)
class FlushJob:
    """Files to be synced; all below `end_offset` is then safe, if the log was not truncated meanwhile."""

    files: FileSystem
    directory_path: str
    end_offset: int
    started_ms: int
    truncation_count: int
    handles: list[OpenFile] = field(default_factory=list)
    syncs_directory: bool = False

    def run(self) -> None:
        """Sync it all; may block. StorageError if the disk fails."""
        try:
            for handle in self.handles:
                self.files.sync(handle)
            if self.syncs_directory:
                self.files.sync_directory(self.directory_path)
        except OSError as error:
            raise StorageError(error, self.directory_path) from error
