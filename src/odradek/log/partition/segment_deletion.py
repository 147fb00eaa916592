"""Deletes segments, or replaces them by cleaned ones, in steps that are safe against a crash.

| file | what loading does with it |
| --- | --- |
| `N.log.cleaned` | incomplete: removed |
| `N.log.swap` | complete: the segments that it covers are deleted, and it is renamed |
| `N.log.deleted` | removed; until then readers could use it for its delay |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from odradek.log import filenames
from odradek.log.errors import storage_errors
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.producers.snapshot_files import SnapshotFiles
from odradek.log.segment.segment import Segment
from odradek.log.segment.segments import Segments


class DeletedFiles(NamedTuple):
    """Files renamed to .deleted, to be removed after the delay."""

    due_ms: int
    paths: tuple[str, ...]


class SegmentDeletion:
    """Removes segments from a log, with their snapshots. Owned by its PartitionLog, on the loop."""

    __slots__ = ("_directory", "_garbage", "_replacement", "_segments", "_snapshots")

    def __init__(self, directory: PartitionDirectory, segments: Segments, snapshots: SnapshotFiles) -> None:
        self._directory = directory
        self._segments = segments
        self._snapshots = snapshots
        self._garbage: list[DeletedFiles] = []
        self._replacement: Iterator[None] | None = None

    def discard(self, segments: Iterable[Segment], *, due_ms: int) -> None:
        """Delete segments in this order; their files may be removed at `due_ms`."""
        removed = list(segments)
        self.finish_replacement()
        self._mark_deleted(removed, due_ms)
        self._segments.remove(removed)
        self._snapshots.remove([segment.base_offset for segment in removed])

    def _mark_deleted(self, segments: Iterable[Segment], due_ms: int) -> None:
        for segment in segments:
            segment.rename(filenames.DELETED)
            segment.close()
            self._garbage.append(DeletedFiles(due_ms, tuple(file.path for file in segment.files())))

    def due_garbage(self, now_ms: int) -> list[str]:
        """Files whose delay is over; each is returned once."""
        if not self._garbage:
            return []
        due = [path for one in self._garbage if one.due_ms <= now_ms for path in one.paths]
        self._garbage = [one for one in self._garbage if one.due_ms > now_ms]
        return due

    # Replacement

    def begin_replacement(
        self, old: Sequence[Segment], new: Sequence[Segment], *, due_ms: int
    ) -> Iterator[None]:
        """Replace segments by cleaned ones, so that a crash leaves either all old or all new ones.

        `new` have the suffix .cleaned, are sealed and synced. Once one is renamed to .swap it is valid:
        loading deletes the segments that it covers and renames it. The last batch of a new segment is where
        it ends, so it must reach as far as the old ones.

        Readers see the new ones at once. The returned iterator has the remaining steps: short ones, before
        each of which the directory must be synced, in any thread. Truncations finish them first.
        """
        with storage_errors(self._directory.path):
            self.finish_replacement()
        steps = self._replace(list(old), list(new), due_ms)
        next(steps)
        self._replacement = steps
        return steps

    def _replace(self, old: list[Segment], new: list[Segment], due_ms: int) -> Iterator[None]:
        with storage_errors(self._directory.path):
            for segment in reversed(new):
                segment.rename(filenames.SWAP)
            self._segments.replace(old, new)
            yield
            self._mark_deleted(old, due_ms)
            # The renames of the old files must be on disk before the .swap files get their names.
            yield
            for segment in new:
                segment.rename("")
            kept = {segment.base_offset for segment in new}
            self._snapshots.remove([one.base_offset for one in old if one.base_offset not in kept])
            self._replacement = None

    def finish_replacement(self) -> None:
        """Finish the remaining steps, if there are any; blocks then."""
        if self._replacement is not None:
            self._directory.files.sync_directory(self._directory.path)
            for _ in self._replacement:
                self._directory.files.sync_directory(self._directory.path)
            self._replacement = None
