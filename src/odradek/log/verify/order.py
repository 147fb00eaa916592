"""Judges what the CRC of a batch does not cover, base offset and leader epoch, by the neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.log.epochs import EpochEntry
from odradek.log.roll import MAX_RELATIVE_OFFSET
from odradek.records.batch import BatchHeader


class OffsetOrder:
    """Offsets of one partition: they rise, and each segment keeps between its name and the next one's."""

    def __init__(self) -> None:
        self.next_offset = -1
        self.gap_count = 0
        self.jumped = False  # a gap lies right before the last batch
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

    def judge(self, header: BatchHeader) -> str | None:
        """What is wrong with this batch's offsets, after all earlier ones."""
        expected = max(self.next_offset, self._base_offset)
        self.jumped = header.base_offset > expected
        self.gap_count += self.jumped
        self.next_offset = header.next_offset
        if header.base_offset < expected:
            return (
                f"offset {header.base_offset} where {expected} or more must be, or the batch before is wrong"
            )
        if header.last_offset >= self._limit:
            return f"offset {header.last_offset} is not of this segment, which ends before {self._limit}"
        return None


class EpochOrder:
    """Leader epochs of one partition: they rise, and change where the leader-epoch-checkpoint says."""

    def __init__(self, entries: Sequence[EpochEntry] | None, log_start_offset: int) -> None:
        """`entries` is None when the checkpoint is missing or damaged, and tells nothing."""
        self._entries = entries
        self._log_start_offset = log_start_offset
        self._at = -1  # the entry in force
        self._epoch = -1

    def judge(self, header: BatchHeader) -> str | None:
        """What is wrong with this batch's epoch, after all earlier ones."""
        epoch, before = header.partition_leader_epoch, self._epoch
        self._epoch = max(epoch, before)
        if epoch < before:
            return f"leader epoch {epoch} after {before}"
        return self._judge_by_checkpoint(epoch, header) if self._entries is not None else None

    def _judge_by_checkpoint(self, epoch: int, header: BatchHeader) -> str | None:
        entries = self._entries or ()
        while self._at + 1 < len(entries) and entries[self._at + 1].start_offset <= header.last_offset:
            self._at += 1
            if (
                entries[self._at].start_offset > header.base_offset
                and header.last_offset >= self._log_start_offset
            ):
                entry = entries[self._at]
                if entry.start_offset == self._log_start_offset and self._at == 0:
                    break  # deleted records: the epoch in force at the log start is noted to begin there
                return f"the leader-epoch-checkpoint lets epoch {entry.epoch} begin inside of this batch"
        expected = entries[self._at].epoch if self._at >= 0 else -1
        if epoch == expected or (self._at < 0 and header.last_offset < self._log_start_offset):
            return None
        return f"leader epoch {epoch}, but the leader-epoch-checkpoint says {expected}"
