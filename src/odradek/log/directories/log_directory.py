"""One entry of `log.dirs`: its lock, its owner, its checkpoint files, and its partitions."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import (
    MetaProperties,
    decode_meta_properties,
    decode_offsets,
    encode_clean_shutdown,
    encode_meta_properties,
)
from odradek.log.errors import DirectoryLocked, InconsistentMetaProperties
from odradek.log.filenames import DirectoryName, DirectoryState, parse_directory_name
from odradek.log.files.file_system import FileSystem, OpenFile
from odradek.log.recovery.log_loader import Checkpoints

logger = logging.getLogger(__name__)

ROOM_BYTES = 16 * 1024 * 1024
"""Less free space counts as full: one large batch and its index may take it."""


class CheckpointJob(NamedTuple):
    """A checkpoint file with its new content; writing it blocks, so a pool does that."""

    directory: LogDirectory
    name: str
    content: bytes

    @property
    def is_needed(self) -> bool:
        """Whether the content has changed, or was not written since the start."""
        return self.directory.checkpointed.get(self.name) != self.content

    def run(self) -> None:
        """Replace the file, synced; OSError if the disk fails."""
        self.directory.write_checkpoint(self.name, self.content)


class DirectoryListing(NamedTuple):
    """The contents of a log directory, by name."""

    partitions: dict[str, DirectoryName]
    unknown: list[str]


class LogDirectory:
    """A directory that holds partitions; owned by the LogManager.

    `failure`: why it is offline, None while it is online. `is_full`: whether a full disk has been logged.
    `checkpointed`: the contents of the checkpoint files written since the start.
    """

    __slots__ = (
        "_checkpoint_lock",
        "_lock",
        "checkpointed",
        "directory_id",
        "failure",
        "files",
        "is_full",
        "path",
    )

    def __init__(self, path: str, files: FileSystem) -> None:
        self.path = os.path.abspath(path)
        self.files = files
        self.failure: OSError | None = None
        self.is_full = False
        self.directory_id: UUID | None = None
        self.checkpointed: dict[str, bytes] = {}
        self._checkpoint_lock = threading.Lock()
        self._lock: OpenFile | None = None

    def __repr__(self) -> str:
        return f"LogDirectory({self.path}{', offline' if self.failure else ''})"

    def join(self, name: str) -> str:
        """The path of an entry."""
        return f"{self.path}/{name}"

    # Disk space

    def notice_full(self, error: Exception) -> None:
        """A write failed for lack of disk space; logged once until there is space again."""
        if not self.is_full:
            self.is_full = True
            logger.error(
                "the disk of %s is full, writes are rejected until there is space: %s", self.path, error
            )

    def notice_room(self) -> None:
        """Check whether a full disk has space again."""
        if self.is_full and self.files.usable_bytes(self.path) >= ROOM_BYTES:
            self.is_full = False
            logger.warning("the disk of %s has space again, writes are accepted", self.path)

    # Ownership

    def lock(self) -> None:
        """Take the lock; DirectoryLocked if it is taken.

        Two kinds of lock: one that Kafka's own lock on this file respects, and one that also works against a
        second manager in this process.
        """
        os.makedirs(self.path, exist_ok=True)
        file = self.files.open(self.join(filenames.LOCK), create=True)
        try:
            fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DirectoryLocked(
                f"{self.path} is in use by another process: one broker per log directory"
            ) from None
        self._lock = file

    def unlock(self) -> None:
        """Release the lock."""
        self._lock = None

    def read_meta_properties(self) -> MetaProperties | None:
        """The owner; None for a new directory. InconsistentMetaProperties if the file is damaged."""
        try:
            return decode_meta_properties(self.files.read_file(self.join(filenames.META_PROPERTIES)))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InconsistentMetaProperties(
                f"{self.join(filenames.META_PROPERTIES)}: {error}; restore it, or remove it to make it anew"
            ) from None

    def claim(self, broker_id: int, cluster_id: str, new_directory_id: UUID) -> None:
        """Claim a new directory, or check that this broker owns it."""
        found = self.read_meta_properties()
        if found is None:
            found = MetaProperties(broker_id, cluster_id, new_directory_id)
            self.write(filenames.META_PROPERTIES, encode_meta_properties(found))
        if found.cluster_id != cluster_id:
            raise InconsistentMetaProperties(
                f"{self.path} belongs to cluster {found.cluster_id}, this is {cluster_id}: name the store of "
                f"that cluster (odradek.coordination), or another directory in log.dirs"
            )
        if found.broker_id != broker_id:
            raise InconsistentMetaProperties(
                f"{self.path} belongs to broker {found.broker_id}, this is broker {broker_id}: "
                f"set broker.id={found.broker_id}, or name another directory in log.dirs"
            )
        self.directory_id = found.directory_id

    # Files beside the partitions

    def write(self, name: str, content: bytes) -> None:
        """Replace one of the small files, synced."""
        self.files.write_file_atomically(self.join(name), content)

    def write_checkpoint(self, name: str, content: bytes) -> None:
        """Replace a checkpoint file, synced, and keep its content; any thread, blocks."""
        with self._checkpoint_lock:
            self.checkpointed.pop(name, None)  # a failed write may have succeeded partly
            self.write(name, content)
            self.checkpointed[name] = content

    def read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """An offset checkpoint; a missing one is empty, and so is a damaged one, with a warning.

        Without a recovery point everything is scanned, which is slow but safe. Without a high watermark
        damage cannot be distinguished from a torn tail, hence the warning.
        """
        try:
            return decode_offsets(self.files.read_file(self.join(name)))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            logger.warning("%s is damaged and ignored: %s", self.join(name), error)
            return {}

    def read_checkpoints(self) -> dict[TopicPartition, Checkpoints]:
        """The checkpoints of each partition, and whether the shutdown was clean; the clean mark is removed.

        It is removed before anything is written, so that a crash does not look like a clean shutdown.
        """
        mark = self.join(filenames.CLEAN_SHUTDOWN)
        is_clean = self.files.exists(mark)
        if is_clean:
            self.files.remove(mark)
            self.files.sync_directory(self.path)
        recovery_points = self.read_offsets(filenames.RECOVERY_POINT_CHECKPOINT)
        high_watermarks = self.read_offsets(filenames.HIGH_WATERMARK_CHECKPOINT)
        log_starts = self.read_offsets(filenames.LOG_START_CHECKPOINT)
        known = {*recovery_points, *high_watermarks, *log_starts, *self._listed()}
        return {
            partition: Checkpoints(
                recovery_point=recovery_points.get(partition, 0),
                high_watermark=high_watermarks.get(partition, 0),
                log_start_offset=log_starts.get(partition, 0),
                is_clean=is_clean,
            )
            for partition in known
        }

    def _listed(self) -> list[TopicPartition]:
        return [
            name.partition for name in self.list().partitions.values() if name.state is DirectoryState.LIVE
        ]

    def mark_clean(self, broker_epoch: int) -> None:
        """Record a clean shutdown."""
        self.write(filenames.CLEAN_SHUTDOWN, encode_clean_shutdown(broker_epoch))

    def list(self) -> DirectoryListing:
        """The partitions, by state, and the directories that are not partitions."""
        partitions: dict[str, DirectoryName] = {}
        unknown = []
        for name in self.files.list(self.path):
            if not self.files.is_directory(self.join(name)):
                continue
            parsed = parse_directory_name(name)
            if parsed is None:
                unknown.append(name)
            else:
                partitions[name] = parsed
        return DirectoryListing(partitions, unknown)


def recorded_properties(paths: Sequence[str], files: FileSystem | None = None) -> MetaProperties | None:
    """The first `meta.properties` of these directories; None if all are new. Blocks.

    InconsistentMetaProperties if they name different brokers. Unreadable files are ignored.
    """
    found: dict[int, tuple[str, MetaProperties]] = {}
    for path in paths:
        directory = LogDirectory(path, files or FileSystem())
        with contextlib.suppress(OSError):
            properties = directory.read_meta_properties()
            if properties is not None:
                found.setdefault(properties.broker_id, (directory.path, properties))
    if len(found) > 1:
        owners = ", ".join(f"{path} to broker {broker_id}" for broker_id, (path, _) in found.items())
        raise InconsistentMetaProperties(f"the directories of log.dirs belong to different brokers: {owners}")
    return next((properties for _, properties in found.values()), None)
