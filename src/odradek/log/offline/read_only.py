"""Look at log directories without changing anything: for dump, verify, scan and fork, on ours and on Kafka's.

Nothing is tidied, rebuilt or created here, and files are opened for reading only, so that a directory on a
read-only disk, or one that a broker is writing, can be looked at as well.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.log import filenames
from odradek.log.checkpoints import decode_offsets
from odradek.log.errors import DamagedIndex
from odradek.log.filenames import DirectoryState, parse_directory_name, parse_segment_filename
from odradek.log.files.file_system import FileSystem, OpenFile
from odradek.log.files.log_file import HandleCache, LogFile, PartitionDirectory
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments
from odradek.records.errors import RecordsError

MAX_DECOMPRESSED_BYTES = 256 * 1024 * 1024
"""No batch of a log is decompressed to more than this, whatever it claims."""

_OPEN_FILES = 64


class NotALog(OdradekError):
    """A path that holds nothing of a log."""


class ReadOnlyFileSystem(FileSystem):
    """Opens for reading whatever is asked; the operating system refuses the rest."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open for reading; nothing is created."""
        return self.open_read_only(path)


def read_only_directory(path: str) -> PartitionDirectory:
    """A partition's directory whose files are opened for reading only."""
    return PartitionDirectory(path, HandleCache(ReadOnlyFileSystem(), _OPEN_FILES))


def read_only_file(path: str, max_bytes: int | None = None) -> LogFile:
    """One file, or the first `max_bytes` of it."""
    folder, name = os.path.split(path)
    size = os.stat(path).st_size
    return LogFile(
        read_only_directory(folder or "."), name, size if max_bytes is None else min(size, max_bytes)
    )


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """What lies in a partition's directory, by name; what is being deleted or cleaned is left out."""

    path: str
    partition: TopicPartition
    segments: dict[int, dict[str, int]] = field(default_factory=dict)  # base offset -> kind -> size
    snapshots: list[int] = field(default_factory=list)

    @property
    def log_directory(self) -> str:
        """The directory that holds this one, and the checkpoints."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def base_offsets(self) -> list[int]:
        """The segments that have a log file, oldest first."""
        return sorted(base for base, sizes in self.segments.items() if filenames.LOG in sizes)

    def join(self, base_offset: int, kind: str) -> str:
        """The path of one file of a segment."""
        return os.path.join(self.path, filenames.segment_filename(base_offset, kind))

    def open_segments(self) -> Segments:
        """The segments, for reading; of the last one whole batches only, for it may be torn or growing."""
        directory = read_only_directory(self.path)
        segments = Segments(
            Segment(directory, base, index_interval_bytes=0, created_ms=0, sizes=self.segments[base])
            for base in self.base_offsets
        )
        if len(segments):
            segments.active.log.size = _whole_size(segments.active)
        return segments


def _whole_size(segment: Segment) -> int:
    """Where the last whole batch ends, by the headers from the last index entry on."""
    end = 0
    with contextlib.suppress(DamagedIndex, RecordsError):
        last = segment.offset_index.last()
        end = segment.span_at(last.position).position if last is not None else 0
    with contextlib.suppress(RecordsError):
        for span in segment.walk(end):
            end = span.end_position
    return end


def list_partition(path: str) -> PartitionFiles:
    """The files of one partition. NotALog if the directory has no segment."""
    name = parse_directory_name(os.path.basename(os.path.abspath(path)))
    # A directory of any name may have been copied from somewhere; then its name is all that is known.
    partition = (
        name.partition if name is not None else TopicPartition(os.path.basename(os.path.abspath(path)), 0)
    )
    found = PartitionFiles(path, partition)
    for file_name in sorted(os.listdir(path)):
        file = parse_segment_filename(file_name)
        if file is None or file.state:
            continue
        if file.kind == filenames.SNAPSHOT:
            found.snapshots.append(file.base_offset)
            continue
        size = os.stat(os.path.join(path, file_name)).st_size
        found.segments.setdefault(file.base_offset, {})[file.kind] = size
    if not found.segments:
        raise NotALog(f"{path}: no segment is in this directory (00000000000000000000.log and the like)")
    return found


def is_partition(path: str) -> bool:
    """Whether a directory holds segment files, whatever it is called."""
    return any(parse_segment_filename(name) is not None for name in os.listdir(path))


def find_partitions(path: str) -> list[str]:
    """The partitions that a path means: itself, or the live ones in a log directory. NotALog if none."""
    if is_partition(path):
        return [path]
    found = list(_partitions_in(path, DirectoryState.LIVE))
    if not found:
        raise NotALog(f"{path}: neither a partition's directory nor one that holds partitions (topic-0)")
    return found


def find_strays(path: str) -> list[str]:
    """The partitions in a log directory that a broker has set aside: kept, not served."""
    return list(_partitions_in(path, DirectoryState.STRAY))


def find_deleted(path: str) -> set[TopicPartition]:
    """The partitions in a log directory that were deleted and whose files will be removed."""
    names = map(parse_directory_name, os.listdir(path))
    return {name.partition for name in names if name is not None and name.state is DirectoryState.DELETE}


def _partitions_in(path: str, state: DirectoryState) -> Iterator[str]:
    for name in sorted(os.listdir(path)):
        parsed = parse_directory_name(name)
        inner = os.path.join(path, name)
        if parsed is not None and parsed.state is state and os.path.isdir(inner):
            yield inner


def read_checkpoint(log_directory: str, name: str) -> dict[TopicPartition, int]:
    """An offset checkpoint; empty if it is missing or damaged."""
    try:
        with open(os.path.join(log_directory, name), "rb") as file:
            return decode_offsets(file.read())
    except (FileNotFoundError, ValueError):
        return {}
