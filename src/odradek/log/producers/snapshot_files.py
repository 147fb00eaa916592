"""The `.snapshot` files of a partition: which there are, which is the best to start from, which may go."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable

from odradek.log import filenames
from odradek.log.files.file_system import OpenFile
from odradek.log.files.log_file import PartitionDirectory
from odradek.log.producers.producer_snapshots import CorruptSnapshot, decode_snapshot, encode_snapshot
from odradek.log.producers.producer_states import ProducerStates


class SnapshotFiles:
    """Snapshots of producer state by offset; owned by the PartitionLog."""

    __slots__ = ("directory", "offsets")

    def __init__(self, directory: PartitionDirectory, offsets: Iterable[int] = ()) -> None:
        self.directory = directory
        self.offsets = sorted(offsets)

    def path(self, offset: int) -> str:
        """The file for an offset."""
        return self.directory.join(filenames.segment_filename(offset, filenames.SNAPSHOT))

    def write(self, producers: ProducerStates) -> OpenFile | None:
        """Keep the state at its end offset; the file, for a later sync, or None if it was there already.

        Not synced here: its CRC shows a torn one, and then an older one and the log serve.
        """
        offset = producers.end_offset
        if offset in self.offsets:
            return None
        files = self.directory.files
        file = files.open(self.path(offset), create=True)
        try:
            files.truncate(file, 0)
            files.write_at(file, encode_snapshot(producers.entries.values()), 0)
        except OSError:
            files.remove(self.path(offset))
            raise
        insort(self.offsets, offset)
        return file

    def load(
        self, log_start_offset: int, end_offset: int, *, now_ms: int, expiration_ms: int
    ) -> ProducerStates:
        """State from the newest whole snapshot in (log start, end]; empty from the log start without one.

        A damaged snapshot is removed: it is derived, and would be tried first each time.
        """
        for offset in reversed(self.offsets[: bisect_right(self.offsets, end_offset)]):
            if offset <= log_start_offset:
                break
            try:
                entries = decode_snapshot(self.directory.files.read_file(self.path(offset)))
            except (CorruptSnapshot, FileNotFoundError):
                self.remove([offset])
                continue
            alive = (entry for entry in entries if not entry.is_expired(now_ms, expiration_ms))
            return ProducerStates(alive, offset)
        return ProducerStates(end_offset=log_start_offset)

    def remove(self, offsets: Iterable[int]) -> None:
        """Remove the files for these offsets."""
        gone = set(offsets)
        for offset in gone:
            self.directory.files.remove(self.path(offset))
        self.offsets = [offset for offset in self.offsets if offset not in gone]

    def remove_above(self, offset: int) -> None:
        """Remove what was taken beyond `offset`: the log there is gone."""
        self.remove(self.offsets[bisect_right(self.offsets, offset) :])

    def remove_torn(self, offset: int) -> None:
        """Remove what a crash has torn beyond `offset`, lest its name keep a whole one from being written."""
        for newer in self.offsets[bisect_right(self.offsets, offset) :]:
            try:
                decode_snapshot(self.directory.files.read_file(self.path(newer)))
            except CorruptSnapshot:
                self.remove([newer])

    def remove_strays(self, base_offsets: Iterable[int]) -> None:
        """Keep one per segment, and the newest of all, which a clean stop leaves at the log end."""
        kept = set(base_offsets)
        if self.offsets and (not kept or self.offsets[-1] > max(kept)):
            kept.add(self.offsets[-1])
        self.remove([offset for offset in self.offsets if offset not in kept])
