"""The files of a partition's directory, after interrupted operations are finished or undone.

    *.deleted      removed: only the delay had kept them
    *.cleaned      removed: compaction had not finished; the originals are there
    *.swap         compaction had finished: what the new segments cover is removed, then they are renamed
    index alone    removed: its log is gone

Other files are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from odradek.log import filenames
from odradek.log.filenames import SegmentFile, parse_segment_filename, segment_filename
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.segment.segment import Segment


@dataclass(slots=True)
class DirectoryFiles:
    """Base offset of each segment -> kind of file -> its size; and the offsets of the snapshots."""

    segments: dict[int, dict[str, int]] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=list)


def tidy_directory(directory: PartitionDirectory) -> DirectoryFiles:
    """Finish or undo what a crash has interrupted, and list what is left."""
    _remove_leftovers(directory)
    _adopt_swaps(directory)
    found = DirectoryFiles()
    for name, file in _segment_files(directory):
        if file.kind == filenames.SNAPSHOT:
            found.snapshots.append(file.base_offset)
        elif not directory.files.exists(directory.join(segment_filename(file.base_offset, filenames.LOG))):
            directory.files.remove(directory.join(name))
        else:
            size = directory.files.size(directory.join(name))
            found.segments.setdefault(file.base_offset, {})[file.kind] = size
    return found


def _segment_files(directory: PartitionDirectory) -> list[tuple[str, SegmentFile]]:
    parsed = ((name, parse_segment_filename(name)) for name in directory.files.list(directory.path))
    return [(name, file) for name, file in parsed if file is not None]


def _remove_leftovers(directory: PartitionDirectory) -> None:
    for name, file in _segment_files(directory):
        if file.state in (filenames.DELETED, filenames.CLEANED):
            directory.files.remove(directory.join(name))


def _adopt_swaps(directory: PartitionDirectory) -> None:
    files = _segment_files(directory)
    swapped = [file for _, file in files if file.state == filenames.SWAP and file.kind == filenames.LOG]
    ranges = [(file.base_offset, _end_of_swap(directory, file.base_offset)) for file in swapped]
    for name, file in files:
        is_covered = any(start <= file.base_offset < end for start, end in ranges)
        if is_covered and file.state == "" and file.kind != filenames.SNAPSHOT:
            directory.files.remove(directory.join(name))
    for name, file in files:
        if file.state == filenames.SWAP:
            directory.files.rename(directory.join(name), directory.join(name.removesuffix(filenames.SWAP)))


def _end_of_swap(directory: PartitionDirectory, base_offset: int) -> int:
    """The offset after the last batch of a compacted segment: what lies before it went into it."""
    path = directory.join(segment_filename(base_offset, filenames.LOG, filenames.SWAP))
    segment = Segment(
        directory,
        base_offset,
        index_interval_bytes=0,
        created_ms=0,
        sizes={filenames.LOG: directory.files.size(path)},
        state=filenames.SWAP,
    )
    end = max(segment.next_offset(), base_offset + 1)
    segment.close()
    return end
