"""Snapshot a log directory, or one partition of it, by hard links: a gigabyte in milliseconds.

    logs of closed segments    linked: their bytes never change
    the active log             copied, as far as it has whole batches
    indexes                    copied, since opening the fork may rewrite them; those of the active
                               log without entries for bytes that were not copied
    snapshots                  copied if they are whole
    epochs                     copied
    offset checkpoints         the lines of the partitions in the fork
    .kafka_cleanshutdown       copied if it is there: then nothing was being written
    meta.properties            only on request, as the owner of a store that is copied with it needs it

The source may be written meanwhile. Of each partition the fork then holds a prefix of the log, as it was at
some moment during the fork, with everything below the high watermark that was in the checkpoint when it
began; the partitions are not of one moment. A segment that is deleted or compacted meanwhile makes its
partition start over. The fork is not synced to the disk. Either side may be truncated and written later: a
log that is shared is copied first (`LogFile.unshare`).
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass

from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import encode_offsets
from odradek.log.leader_epochs import EpochEntry, LeaderEpochs, decode_epochs
from odradek.log.offline.read_only import PartitionFiles, find_partitions, list_partition, read_checkpoint
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot
from odradek.records.batch import has_valid_crc, read_header

_CHECKPOINTS = (
    filenames.RECOVERY_POINT_CHECKPOINT,
    filenames.HIGH_WATERMARK_CHECKPOINT,
    filenames.LOG_START_CHECKPOINT,
    filenames.CLEANER_CHECKPOINT,
)
_CANNOT_LINK = frozenset({errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})
_ATTEMPTS = 20


class CannotFork(OdradekError):
    """The fork was not made, and what there was of it is removed."""


@dataclass(slots=True)
class ForkReport:
    """What a fork cost."""

    partitions: int = 0
    linked_files: int = 0
    linked_bytes: int = 0
    copied_files: int = 0
    copied_bytes: int = 0
    could_not_link: bool = False  # another file system: everything was copied


def fork(
    source: str, target: str, *, keeps_identity: bool = False, link: Callable[[str, str], None] = os.link
) -> ForkReport:
    """Make `target`, a log directory, out of the log directory or the partition `source`.

    NotALog if the source is neither; CannotFork if there is something at the target already, or if the source
    changes faster than it can be linked.
    """
    partitions = find_partitions(source)
    if os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise CannotFork(f"{target}: there is something already; a fork needs a new directory")
    is_new = not os.path.exists(target)
    os.makedirs(target, exist_ok=True)
    try:
        return _Fork(target, link).run(partitions, keeps_identity)
    except BaseException:
        shutil.rmtree(target) if is_new else _empty(target)
        raise


def _empty(path: str, keeps: Collection[str] = ()) -> None:
    for entry in list(os.scandir(path)):
        if entry.path not in keeps:
            shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)


class _Changed(Exception):
    """The source's segments are not those that were listed."""


class _Fork:
    """One fork; used only by `fork`."""

    def __init__(self, target: str, link: Callable[[str, str], None]) -> None:
        self.target = target
        self.link = link
        self.report = ForkReport()
        self._done: set[str] = set()

    def run(self, partitions: list[str], keeps_identity: bool) -> ForkReport:
        """Checkpoints are read first, so that no offset in them is beyond the end of its log."""
        log_directory = os.path.dirname(os.path.abspath(partitions[0]))
        is_clean = os.path.exists(os.path.join(log_directory, filenames.CLEAN_SHUTDOWN))
        checkpoints = {name: read_checkpoint(log_directory, name) for name in _CHECKPOINTS}
        ends = dict(self._partition(path) for path in partitions)
        for name, offsets in checkpoints.items():
            kept = {tp: min(offset, ends[tp]) for tp, offset in offsets.items() if tp in ends}
            if os.path.exists(os.path.join(log_directory, name)):
                self._write(os.path.join(self.target, name), encode_offsets(kept))
        identity = (filenames.META_PROPERTIES,) if keeps_identity else ()
        # The file is deleted before the first write: if it is still there, nothing was written meanwhile.
        marks = (filenames.CLEAN_SHUTDOWN,) if is_clean else ()
        for name in (*identity, *marks):
            if os.path.exists(os.path.join(log_directory, name)):
                self._copy(os.path.join(log_directory, name), os.path.join(self.target, name))
        return self.report

    def _partition(self, path: str) -> tuple[TopicPartition, int]:
        """Fork one partition; where its log ends then."""
        for _ in range(_ATTEMPTS):
            try:
                files = list_partition(path)
                epochs_before = _read(os.path.join(path, filenames.LEADER_EPOCH_CHECKPOINT))
                inner = os.path.join(self.target, str(files.partition))
                os.mkdir(inner)
                end = self._segments(files, inner)
            except (_Changed, FileNotFoundError):
                _empty(self.target, keeps=self._done)
                continue
            self._small_files(files, inner, end, epochs_before)
            self._done.add(inner)
            self.report.partitions += 1
            return files.partition, end
        raise CannotFork(f"{path}: its segments change faster than they can be linked; try again")

    def _segments(self, files: PartitionFiles, inner: str) -> int:
        """Link the closed segments and copy the active one; the offset after the last batch."""
        *closed, active = files.base_offsets
        linked = {}
        for base_offset in closed:
            for kind in files.segments[base_offset]:
                source = files.join(base_offset, kind)
                target = os.path.join(inner, os.path.basename(source))
                if kind == filenames.LOG:
                    linked[source] = self._link(source, target)
                else:
                    self._copy(source, target)
        end = self._active(files, active, inner)
        # Compaction may have put other segments in the place of some: the set must be of one moment.
        now = list_partition(files.path)
        same = now.base_offsets[: len(closed)] == closed
        if not same or any(os.stat(path).st_ino != inode for path, inode in linked.items()):
            raise _Changed
        return end

    def _link(self, source: str, target: str) -> int:
        """Link a file, or copy it where that cannot be; the source's inode."""
        try:
            self.link(source, target)
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            self.report.could_not_link = True
            self._copy(source, target)
            return os.stat(source).st_ino
        status = os.stat(target)
        self.report.linked_files += 1
        self.report.linked_bytes += status.st_size
        return status.st_ino

    # The active segment

    def _active(self, files: PartitionFiles, base_offset: int, inner: str) -> int:
        # Its indexes first: a writer appends to the log before it updates them. Aborted transactions last,
        # for a log without its aborts would show records that must not be seen.
        offsets = _read(files.join(base_offset, filenames.OFFSET_INDEX))
        timestamps = _read(files.join(base_offset, filenames.TIME_INDEX))
        log = os.path.join(inner, filenames.segment_filename(base_offset, filenames.LOG))
        self._copy(files.join(base_offset, filenames.LOG), log)
        aborted = _read(files.join(base_offset, filenames.TXN_INDEX))
        end_position, end_offset = _whole_batches(list_partition(inner), base_offset)
        os.truncate(log, end_position)
        kept = {
            filenames.OFFSET_INDEX: _rows_below(offsets, ">ii", 1, end_position),
            filenames.TIME_INDEX: _rows_below(timestamps, ">qi", 1, end_offset - base_offset),
            filenames.TXN_INDEX: _rows_below(aborted, ">hqqqq", 3, end_offset),
        }
        for kind, content in kept.items():
            if content or kind != filenames.TXN_INDEX:
                self._write(os.path.join(inner, filenames.segment_filename(base_offset, kind)), content)
        return end_offset

    # The small files

    def _small_files(self, files: PartitionFiles, inner: str, end: int, epochs_before: bytes) -> None:
        for offset in files.snapshots:
            source = files.join(offset, filenames.SNAPSHOT)
            content = _read(source)
            if offset <= end and _is_whole_snapshot(content):
                self._write(os.path.join(inner, os.path.basename(source)), content)
        epochs = _read(os.path.join(files.path, filenames.LEADER_EPOCH_CHECKPOINT))
        if epochs:
            content = _epochs_up_to(epochs_before, epochs, end)
            self._write(os.path.join(inner, filenames.LEADER_EPOCH_CHECKPOINT), content)
        metadata = os.path.join(files.path, filenames.PARTITION_METADATA)
        if os.path.exists(metadata):
            self._copy(metadata, os.path.join(inner, filenames.PARTITION_METADATA))

    def _copy(self, source: str, target: str) -> None:
        shutil.copyfile(source, target)
        self._count(target)

    def _write(self, path: str, content: bytes) -> None:
        with open(path, "xb") as file:
            file.write(content)
        self._count(path)

    def _count(self, path: str) -> None:
        self.report.copied_files += 1
        self.report.copied_bytes += os.stat(path).st_size


def _read(path: str) -> bytes:
    """A file's content; nothing if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _is_whole_snapshot(content: bytes) -> bool:
    """Not one that went with its segment, or of which not all bytes are there yet: the log can do without."""
    try:
        decode_snapshot(content)
    except CorruptSnapshot:
        return False
    return True


def _epochs_up_to(before: bytes, after: bytes, end: int) -> bytes:
    """The epochs of what was copied, by what the source had before and after it.

    Meanwhile new ones may have begun, and the start of the log may have moved, even beyond our end.
    """
    try:
        entries = [*decode_epochs(before), *decode_epochs(after)] if before else decode_epochs(after)
    except ValueError:
        return after  # damaged in the source; opening the fork reports it
    begins: dict[int, int] = {}
    for epoch, start_offset in entries:
        begins[epoch] = min(start_offset, begins.get(epoch, start_offset))
    epochs = LeaderEpochs(EpochEntry(epoch, begins[epoch]) for epoch in sorted(begins))
    epochs.truncate_from_end(end + 1)
    return epochs.encode()


def _rows_below(content: bytes, form: str, column: int, limit: int) -> bytes:
    """The entries of an index for what was copied, without the zeroes that only reserve space."""
    entry = struct.Struct(form)
    kept = 0
    for row in entry.iter_unpack(content[: len(content) - len(content) % entry.size]):
        if row[column] >= limit or (kept and row[column] == 0):
            break
        kept += entry.size
    return content[:kept]


def _whole_batches(files: PartitionFiles, base_offset: int) -> tuple[int, int]:
    """Where the last whole batch of a copied segment ends: position and offset."""
    segment = files.open_segments().active
    last = None
    for span in segment.walk():
        last = span
    if last is None:
        return 0, base_offset
    batch = segment.batch_at(last)
    if not has_valid_crc(batch, 0, read_header(batch)):
        # Its bytes were not all there yet, as may be where the file was made large beforehand.
        return last.position, last.base_offset
    return last.end_position, last.last_offset + 1
