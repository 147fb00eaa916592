"""Deletes partition directories: they are renamed, so that a crash is safe, and removed later."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple
from uuid import uuid4

from odradek.common.ids import TopicPartition
from odradek.log.errors import StorageError
from odradek.log.filenames import DirectoryState, marked_directory_name
from odradek.log.files.file_system import FileSystem
from odradek.log.partition.partition_log import PartitionLog


class DeletedDirectory(NamedTuple):
    """A partition's directory that will be removed; its log may be read until then."""

    due_ms: int
    path: str
    log: PartitionLog | None = None


class DirectoryDeletion:
    """The directories to be removed in all log directories. Owned by the log manager.

    `mark`, `give_up` and `remove` block, and any thread may call them.
    """

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._deleted: list[DeletedDirectory] = []

    def add(self, path: str, due_ms: int, log: PartitionLog | None = None) -> None:
        """Schedule the removal of a directory that is renamed already."""
        self._deleted.append(DeletedDirectory(due_ms, path, log))

    def give_up(self, partition: TopicPartition, path: str, log: PartitionLog | None, due_ms: int) -> None:
        """Rename a directory, whose log may still be read, and schedule its removal."""
        try:
            renamed = self.mark(partition, path, DirectoryState.DELETE)
        except OSError as error:
            raise StorageError(error, path) from error
        if log is not None:
            log.directory.path = renamed
        self.add(renamed, due_ms, log)

    def mark(self, partition: TopicPartition, path: str, state: DirectoryState) -> str:
        """Rename a directory according to its state; its new path."""
        parent = os.path.dirname(path)
        marked = f"{parent}/{marked_directory_name(partition, uuid4().hex, state)}"
        self._files.rename(path, marked)
        self._files.sync_directory(parent)
        return marked

    def due(self, now_ms: int) -> list[str]:
        """The directories whose delay is over; each is returned once.

        Their files are closed: the cache of open files would keep their space on the disk.
        """
        due = [one for one in self._deleted if one.due_ms <= now_ms]
        for directory in due:
            self._deleted.remove(directory)  # in place: other threads append to it
            if directory.log is not None:
                directory.log.release()
        return [directory.path for directory in due]

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files, and directories with their contents."""
        for path in paths:
            if not self._files.is_directory(path):
                self._files.remove(path)
                continue
            for name in self._files.list(path):
                self._files.remove(f"{path}/{name}")
            self._files.remove_directory(path)
