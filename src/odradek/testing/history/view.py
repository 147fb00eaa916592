"""A history arranged by partition, as the rules need it: which value was seen at which offset, by whom."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from odradek.testing.history.operations import (
    CLIENT_KILLED,
    Commit,
    Committed,
    End,
    History,
    Outcome,
    Poll,
    Read,
    Send,
)


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class PartitionView:
    """What is known of one partition."""

    sends: list[Send] = field(default_factory=list)
    values_at: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By offset: the values that an acknowledgement or a read put there."""
    offsets_of: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    read: set[str] = field(default_factory=set)
    highest_read: int = -1


class View:
    """Indexes over a history, made once and used by all rules."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.partitions: dict[Place, PartitionView] = defaultdict(PartitionView)
        self.ends = {end.transaction: end.end for end in history.transactions}
        for send in history.sends:
            self._add_send(send)
        for poll in history.polls:
            for read in poll.reads:
                self._add_read(read)

    def _add_send(self, send: Send) -> None:
        partition = self.partitions[Place(send.topic, send.partition)]
        partition.sends.append(send)
        if send.outcome is Outcome.ACKNOWLEDGED and send.offset >= 0:
            partition.values_at[send.offset].add(send.value)
            partition.offsets_of[send.value].add(send.offset)

    def _add_read(self, read: Read) -> None:
        partition = self.partitions[Place(read.topic, read.partition)]
        partition.values_at[read.offset].add(read.value)
        partition.offsets_of[read.value].add(read.offset)
        partition.read.add(read.value)
        partition.highest_read = max(partition.highest_read, read.offset)

    def end_of(self, send: Send) -> End | None:
        """How the send's transaction ended; None if it is in none."""
        if not send.transaction:
            return None
        return self.ends.get(send.transaction, End.UNKNOWN)

    def is_promised(self, send: Send) -> bool:
        """Whether the record must be there for every reader."""
        return send.outcome is Outcome.ACKNOWLEDGED and self.end_of(send) in (None, End.COMMITTED)

    @cached_property
    def promised(self) -> frozenset[str]:
        """The values that every reader must see."""
        return frozenset(send.value for send in self.history.sends if self.is_promised(send))

    @cached_property
    def send_of(self) -> dict[str, Send]:
        """The send of a value."""
        return {send.value: send for send in self.history.sends}

    @cached_property
    def killed_prefixes(self) -> tuple[str, ...]:
        """Values of killed producers may be read without ever having been recorded."""
        return tuple(fault.target for fault in self.history.faults if fault.kind == CLIENT_KILLED)

    @cached_property
    def sessions(self) -> dict[tuple[str, int, Place], list[Read]]:
        """What one reader read of one partition without its position being set in between, in order."""
        read: dict[tuple[str, int, Place], list[Read]] = defaultdict(list)
        for poll in self.history.polls:
            for one in poll.reads:
                read[poll.worker, poll.session, Place(one.topic, one.partition)].append(one)
        return read

    @cached_property
    def values_of_reader(self) -> dict[str, set[str]]:
        """Every value that a reader read."""
        values: dict[str, set[str]] = defaultdict(set)
        for poll in self.history.polls:
            values[poll.worker].update(read.value for read in poll.reads)
        return values

    @cached_property
    def committed_only(self) -> frozenset[str]:
        """The readers that read with isolation.level=read_committed."""
        return frozenset(poll.worker for poll in self.history.polls if poll.read_committed)

    def effective_ms(self, commit: Commit) -> int | None:
        """By when a committed offset was certainly in effect; None if it is not known to be."""
        if commit.outcome is not Outcome.ACKNOWLEDGED:
            return None
        return commit.ended_ms if not commit.transaction else self._committed_ms.get(commit.transaction)

    @cached_property
    def _committed_ms(self) -> dict[str, int]:
        ends = self.history.transactions
        return {end.transaction: end.at_ms for end in ends if end.end is End.COMMITTED}

    @cached_property
    def fetched_by_group(self) -> dict[tuple[str, Place], list[Committed]]:
        """The offsets that were fetched of a group and a partition."""
        fetched: dict[tuple[str, Place], list[Committed]] = defaultdict(list)
        for one in self.history.committed:
            fetched[one.group, Place(one.topic, one.partition)].append(one)
        return fetched

    @cached_property
    def polls_of_group(self) -> dict[str, list[Poll]]:
        """The polls of all members of a group."""
        polls: dict[str, list[Poll]] = defaultdict(list)
        for poll in self.history.polls:
            if poll.group:
                polls[poll.group].append(poll)
        return polls
