"""The operations of a history: sends, polls, commits, transactions and faults, each as one line of JSON.

A worker writes what it did in its own file, in the order in which it learned the outcome. Times are
milliseconds of the machine's monotonic clock, which all processes share. A line is `[kind, field, ...]`, the
fields in the order of the class below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

CLIENT_KILLED = "kill client"
"""The kind of a fault whose target is the value prefix of a producer that was killed with sends in flight."""


class Outcome(StrEnum):
    """What a client knows about something it asked for."""

    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    """Nobody knows: a time-out, a lost connection, an error after the append."""
    FAILED = "failed"
    """It certainly did not happen and never will."""


class End(StrEnum):
    """How a transaction ended, as far as its producer knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class Read(NamedTuple):
    """A record that a poll returned."""

    topic: str
    partition: int
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Send:
    """One record given to a producer; values are unique over the whole history."""

    worker: str
    at_ms: int
    topic: str
    partition: int
    """-1 when the producer does not know it."""
    number: int
    """The place among the sends of this worker to this partition, in the order in which they were given."""
    value: str
    outcome: Outcome
    offset: int = -1
    """-1 when the producer does not know it."""
    idempotent: bool = True
    ordered: bool = True
    """Whether the producer promises the order of its sends to one partition."""
    transaction: str = ""


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll returned."""

    worker: str
    at_ms: int
    session: int
    """Another number whenever the reader's position was set: assignment, rebalance, seek."""
    reads: tuple[Read, ...]
    group: str = ""
    read_committed: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """An offset that a group member committed: the next one to read.

    In a transaction it takes effect when that is committed; its offsets only grow in a group.
    """

    worker: str
    at_ms: int
    ended_ms: int
    group: str
    topic: str
    partition: int
    offset: int
    outcome: Outcome
    transaction: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """A group's committed offset as somebody fetched it, from `at_ms` on; -1 if there is none.

    Where offsets are committed in transactions the fetch has waited for open ones (require stable).
    """

    worker: str
    at_ms: int
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Somebody set a group's offsets: they may go back here."""

    at_ms: int
    group: str


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of a transaction; its sends name it."""

    worker: str
    at_ms: int
    transaction: str
    end: End


@dataclass(frozen=True, slots=True)
class Ends:
    """Up to where a partition may be read, and up to where with read_committed, as somebody saw it.

    `within_ms`: how long the cluster has, without faults, to decide all that is below the high watermark.
    """

    worker: str
    at_ms: int
    topic: str
    partition: int
    last_stable_offset: int
    high_watermark: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class WholeRead:
    """This reader read the topic from its beginning to its end, after all faults were healed."""

    worker: str
    at_ms: int
    topic: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done to the cluster (or to a client), and when it was healed."""

    kind: str
    target: str
    at_ms: int
    healed_ms: int = -1


Operation = Send | Poll | Commit | Committed | Reset | TransactionEnd | Ends | WholeRead | Fault
_KINDS: dict[str, type[Operation]] = {
    "send": Send,
    "poll": Poll,
    "commit": Commit,
    "committed": Committed,
    "reset": Reset,
    "transaction": TransactionEnd,
    "ends": Ends,
    "whole": WholeRead,
    "fault": Fault,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(slots=True)
class History:
    """All operations of a run, by kind; of one worker in the order of its file."""

    sends: list[Send] = field(default_factory=list)
    polls: list[Poll] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    committed: list[Committed] = field(default_factory=list)
    resets: list[Reset] = field(default_factory=list)
    transactions: list[TransactionEnd] = field(default_factory=list)
    ends: list[Ends] = field(default_factory=list)
    whole_reads: list[WholeRead] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> History:
        """The history of these operations."""
        history = cls()
        for operation in operations:
            history.add(operation)
        return history

    def add(self, operation: Operation) -> None:
        """Add one operation after the others of its kind."""
        match operation:
            case Send():
                self.sends.append(operation)
            case Poll():
                self.polls.append(operation)
            case Commit():
                self.commits.append(operation)
            case Committed():
                self.committed.append(operation)
            case Reset():
                self.resets.append(operation)
            case TransactionEnd():
                self.transactions.append(operation)
            case Ends():
                self.ends.append(operation)
            case WholeRead():
                self.whole_reads.append(operation)
            case Fault():
                self.faults.append(operation)

    def __iter__(self) -> Iterator[Operation]:
        yield from self.sends
        yield from self.polls
        yield from self.commits
        yield from self.committed
        yield from self.resets
        yield from self.transactions
        yield from self.ends
        yield from self.whole_reads
        yield from self.faults


def encode(operation: Operation) -> str:
    """One line, without its end."""
    return json.dumps([_NAMES[type(operation)], *astuple(operation)], separators=(",", ":"))


def decode(line: str) -> Operation:
    """The operation of a line; ValueError if it is not one."""
    name, *fields = json.loads(line)
    if name not in _KINDS:
        raise ValueError(f"unknown kind of operation: {name}")
    return _decode_fields(name, fields)


def _decode_fields(name: str, fields: list[Any]) -> Operation:
    if name == "send":
        fields[6] = Outcome(fields[6])
    elif name == "poll":
        fields[3] = tuple(Read(*read) for read in fields[3])
    elif name == "commit":
        fields[7] = Outcome(fields[7])
    elif name == "transaction":
        fields[3] = End(fields[3])
    return _KINDS[name](*fields)
