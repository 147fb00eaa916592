"""Checks what the CRC of a batch does not cover, base offset and leader epoch, against adjacent batches.

If a value decreases, the batch before is reported when its own value had jumped ahead, since a flipped bit
looks like that. For the first batch of a segment, the segment before is never reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.leader_epochs import EpochEntry
from odradek.log.segment.roll import MAX_RELATIVE_OFFSET
from odradek.records.batch import BatchHeader


class Fault(NamedTuple):
    """A batch that cannot be where it is: the byte in its file where it begins, and why."""

    position: int
    problem: str


class OffsetOrder:
    """Offsets of one partition: they rise, and each segment keeps between its name and the next one's."""

    def __init__(self) -> None:
        self.next_offset = -1
        self.gap_count = 0
        self.jumped = False  # a gap lies right before the last batch
        self.last_position = 0
        self._base_offset = 0
        self._limit = 0

    def enter_segment(self, base_offset: int, limit: int | None) -> None:
        """What follows is in the segment of that name; `limit` is the next segment's."""
        highest = base_offset + MAX_RELATIVE_OFFSET + 1
        self._base_offset, self._limit = base_offset, highest if limit is None else min(limit, highest)
        if self.next_offset < 0:
            self.next_offset = base_offset

    def skip_to(self, offset: int) -> None:
        """Nothing is known of what comes before `offset`."""
        self.next_offset = offset

    def check(self, header: BatchHeader, position: int) -> Fault | None:
        """What is wrong with this batch's offsets, or with those of the one before it."""
        expected = max(self.next_offset, self._base_offset)
        has_jumped_before, position_before = self.jumped, self.last_position
        self.jumped, self.last_position = header.base_offset > expected, position
        self.gap_count += self.jumped
        self.next_offset = header.next_offset
        if header.base_offset < expected:
            problem = f"offset {header.base_offset} comes where {expected} or more must be"
            return Fault(position_before if has_jumped_before and position else position, problem)
        if header.last_offset >= self._limit:
            problem = f"offset {header.last_offset} is not of this segment, which ends before {self._limit}"
            return Fault(position, problem)
        return None


class EpochOrder:
    """Leader epochs of one partition: they rise, and change where the leader-epoch-checkpoint says."""

    def __init__(self, entries: Sequence[EpochEntry] | None, log_start_offset: int) -> None:
        """`entries` is None when the checkpoint is missing or damaged, and nothing is known."""
        self._entries = entries
        self._log_start_offset = log_start_offset
        self._in_force = -1  # number of the entry that the last batch was written under
        self._epoch = -1
        self._jumped = False
        self.last_position = 0

    def check(self, header: BatchHeader, position: int) -> Fault | None:
        """What is wrong with this batch's epoch, or with that of the one before it."""
        epoch, before = header.partition_leader_epoch, self._epoch
        has_jumped_before, position_before = self._jumped, self.last_position
        self._epoch, self._jumped, self.last_position = epoch, epoch > before, position
        if epoch < before:
            problem = f"leader epoch {epoch} comes after {before}"
            return Fault(position_before if has_jumped_before and position else position, problem)
        return None

    def check_last(self, header: BatchHeader) -> Fault | None:
        """What is wrong with the epoch of the last batch of all, behind which none can step back.

        The checkpoint is written before the first batch of an epoch, so a later epoch than the latest there
        cannot be; unless an epoch begins just here, when it is the checkpoint that has the wrong number.
        """
        if not self._jumped or not self._entries or self._epoch <= self._entries[-1].epoch:
            return None
        if any(entry.start_offset == header.base_offset for entry in self._entries):
            return None
        return Fault(
            self.last_position, f"leader epoch {self._epoch}, the latest is {self._entries[-1].epoch}"
        )

    def compare(self, header: BatchHeader) -> str | None:
        """How this batch disagrees with the checkpoint; either may be wrong."""
        if self._entries is None:
            return None
        entry = self._enter(header)
        if entry is not None and self._begins_inside(entry, header):
            return f"epoch {entry.epoch} would begin inside of this batch, at {entry.start_offset}"
        expected = entry.epoch if entry is not None else -1
        if header.partition_leader_epoch == expected:
            return None
        if entry is None and header.last_offset < self._log_start_offset:
            return None  # deleted, and so is the epoch it was written in
        return f"leader epoch {header.partition_leader_epoch} where the checkpoint says {expected}"

    def _enter(self, header: BatchHeader) -> EpochEntry | None:
        """The last entry that begins before this batch ends."""
        entries = self._entries or ()
        while (following := self._in_force + 1) < len(entries):
            if entries[following].start_offset > header.last_offset:
                break
            self._in_force = following
        return entries[self._in_force] if self._in_force >= 0 else None

    def _begins_inside(self, entry: EpochEntry, header: BatchHeader) -> bool:
        # Where records were deleted, the epoch of the log start offset is recorded as beginning there.
        is_log_start = self._in_force == 0 and entry.start_offset == self._log_start_offset
        return entry.start_offset > header.base_offset and not is_log_start
