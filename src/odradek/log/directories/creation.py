"""Creates the directory and files of a new partition, where blocking is allowed."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import encode_partition_metadata
from odradek.log.directories.log_directory import LogDirectory
from odradek.log.errors import LogCorrupted
from odradek.log.partition.partition_log import PartitionLog


class Creation:
    """A partition's directory to be created; `run` stores the result for the owner of the logs.

    `load` returns the log of a partition's directory by its path.
    """

    __slots__ = ("_load", "directory", "error", "log", "partition", "topic_id")

    def __init__(
        self,
        partition: TopicPartition,
        directory: LogDirectory,
        topic_id: UUID | None,
        load: Callable[[str], PartitionLog],
    ) -> None:
        self.partition = partition
        self.directory = directory
        self.topic_id = topic_id
        self.log: PartitionLog | None = None
        self.error: OSError | LogCorrupted | None = None
        self._load = load

    def run(self) -> None:
        """Create directory and files; any thread, blocks."""
        try:
            self.log = self._load(self._make_directory())
        except (OSError, LogCorrupted) as error:
            self.error = error

    def _make_directory(self) -> str:
        files, path = self.directory.files, self.directory.join(str(self.partition))
        if not files.exists(path):
            files.make_directory(path)
            files.sync_directory(self.directory.path)
        if self.topic_id is not None:
            metadata = f"{path}/{filenames.PARTITION_METADATA}"
            files.write_file_atomically(metadata, encode_partition_metadata(self.topic_id))
        return path
