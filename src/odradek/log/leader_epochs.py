"""Leader epochs of a log: at which offset each leader began to write. Pure: the caller keeps the file.

The file `leader-epoch-checkpoint`, as text:

    0                        version
    2                        number of lines that follow
    0 0                      epoch, start offset
    3 120

Both columns rise. Followers and leaders compare them to find where their logs part (KIP-101, KIP-279).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1
VERSION = 0


class EpochEntry(NamedTuple):
    """`epoch`'s leader wrote from `start_offset` on."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The greatest epoch that is not above the one asked for, and the offset after its last record."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log, oldest first; owned by its PartitionLog.

    A change is not on the disk until the caller has written and synced
    `encode()`; this must be done before the first batch of an epoch is appended.
    """

    __slots__ = ("_epochs", "_start_offsets")

    def __init__(self, entries: Iterable[EpochEntry] = ()) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        for entry in entries:
            self.assign(entry.epoch, entry.start_offset)

    def __iter__(self) -> Iterator[EpochEntry]:
        return map(EpochEntry, self._epochs, self._start_offsets)

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def latest(self) -> int:
        """The epoch of the newest leader, or -1."""
        return self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that `epoch` begins at `start_offset`; False if nothing changed.

        An entry that contradicts it, one with the same or a higher epoch or offset, belongs to a history that
        was given up, and goes.
        """
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} at offset {start_offset}")
        if self._epochs and self._epochs[-1] == epoch and self._start_offsets[-1] <= start_offset:
            return False
        kept = min(bisect_left(self._epochs, epoch), bisect_left(self._start_offsets, start_offset))
        del self._epochs[kept:], self._start_offsets[kept:]
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        return True

    def epoch_for(self, offset: int) -> int:
        """The epoch in which `offset` was written, or -1."""
        at = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[at] if at >= 0 else UNDEFINED_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where `epoch` ended, as OffsetForLeaderEpoch answers; both fields are -1 when it cannot be told."""
        if epoch == UNDEFINED_EPOCH or not self._epochs:
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self._epochs[-1]:
            return EpochEnd(epoch, log_end_offset)
        following = bisect_right(self._epochs, epoch)
        if following == len(self._epochs):
            return EpochEnd(UNDEFINED_EPOCH, UNDEFINED_OFFSET)  # an epoch of the future
        if following == 0:
            # Everything of that epoch is gone; the oldest that is left began where it ended.
            return EpochEnd(epoch, self._start_offsets[0])
        return EpochEnd(self._epochs[following - 1], self._start_offsets[following])

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget the epochs that begin at `end_offset` or later; False if there are none."""
        kept = bisect_left(self._start_offsets, end_offset)
        changed = kept < len(self._epochs)
        del self._epochs[kept:], self._start_offsets[kept:]
        return changed

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget the epochs that ended before `start_offset`; the one in force there now begins there."""
        at = bisect_right(self._start_offsets, start_offset) - 1
        if at < 0 or (self._start_offsets[at] == start_offset and at == 0):
            return False
        del self._epochs[:at], self._start_offsets[:at]
        self._start_offsets[0] = start_offset
        return True

    def clear(self) -> None:
        """Forget every epoch."""
        self._epochs.clear()
        self._start_offsets.clear()

    def encode(self) -> bytes:
        """The file's content."""
        lines = [str(VERSION), str(len(self)), *(f"{epoch} {start}" for epoch, start in self)]
        return ("\n".join(lines) + "\n").encode("ascii")


def decode_epochs(content: bytes) -> list[EpochEntry]:
    """The entries of a checkpoint file; ValueError if it is damaged."""
    version, count, *lines = content.decode("ascii").splitlines()
    if int(version) != VERSION or int(count) != len(lines):
        raise ValueError(f"{len(lines)} lines of {count}, version {version}")
    entries = []
    for line in lines:
        epoch, start_offset = line.split(" ")
        entries.append(EpochEntry(int(epoch), int(start_offset)))
    if any(a.epoch >= b.epoch or a.start_offset >= b.start_offset for a, b in pairwise(entries)):
        raise ValueError("epochs do not rise")
    if entries and min(entries[0]) < 0:
        raise ValueError("negative epoch or offset")
    return entries
