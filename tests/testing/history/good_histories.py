"""Histories that keep every rule: a small log in memory, written and read as a correct cluster would."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import strategies as st

from odradek.testing.history.operations import (
    Commit,
    Committed,
    End,
    Ends,
    Fault,
    Operation,
    Outcome,
    Poll,
    Read,
    Send,
    TransactionEnd,
    WholeRead,
)

TOPIC, PARTITIONS, GROUP = "t", 2, "g"
COPIERS, SOURCE, WITHIN_MS = "copiers", "source", 1000
PRODUCERS = ("a", "b")


@dataclass
class SmallCluster:
    """Two partitions, a reader with an assignment, one with read_committed, and a group."""

    log: dict[int, list[Send]] = field(default_factory=lambda: defaultdict(list))
    operations: list[Operation] = field(default_factory=list)
    sent: int = 0
    now_ms: int = 0
    positions: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    ends: dict[str, End] = field(default_factory=dict)
    copied: int = 0
    """The offset that transactions have committed, and the highest one that they have tried to."""
    tried: int = 0

    def tick(self) -> int:
        self.now_ms += 1
        return self.now_ms

    def send(
        self, worker: str, partition: int, outcome: Outcome, arrives: bool, transaction: str = ""
    ) -> None:
        """A record that arrives, or (unknown or failed) does not."""
        offset = len(self.log[partition]) if arrives else -1
        known = offset if outcome is Outcome.ACKNOWLEDGED else -1
        value = f"{worker}-{self.sent}"
        send = Send(
            worker, self.tick(), TOPIC, partition, self.sent, value, outcome, known, transaction=transaction
        )
        self.sent += 1
        self.operations.append(send)
        if arrives:
            self.log[partition].append(send)

    def transact(self, worker: str, count: int, end: End) -> None:
        """One record after the other to both partitions, and a marker, which takes an offset as well."""
        transaction = f"{worker}/{self.sent}"
        for number in range(count):
            self.send(worker, number % PARTITIONS, Outcome.ACKNOWLEDGED, True, transaction)
        self.tried += 1
        began, ended = self.tick(), self.tick()
        self.operations.append(
            Commit(worker, began, ended, COPIERS, SOURCE, 0, self.tried, Outcome.ACKNOWLEDGED, transaction)
        )
        self.ends[transaction] = end
        self.look_at_ends(open_since=len(self.log[0]) - count)
        self.operations.append(TransactionEnd(worker, self.tick(), transaction, end))
        if end is End.COMMITTED:
            self.copied = self.tried
        self.look_at_ends()
        self.operations.append(Committed("look", self.tick(), COPIERS, SOURCE, 0, self.copied or -1))

    def look_at_ends(self, open_since: int | None = None) -> None:
        end = len(self.log[0])
        stable = end if open_since is None else max(0, open_since)
        self.operations.append(Ends("look", self.tick(), TOPIC, 0, stable, end, WITHIN_MS))

    def read(
        self, worker: str, partition: int, count: int, *, committed: bool = False, group: str = ""
    ) -> None:
        start = self.positions[worker, partition]
        end = min(start + count, len(self.log[partition]))
        reads = tuple(
            Read(TOPIC, partition, offset, send.value)
            for offset, send in enumerate(self.log[partition][start:end], start)
            if not committed or self.ends.get(send.transaction, End.COMMITTED) is End.COMMITTED
        )
        self.positions[worker, partition] = end
        self.operations.append(Poll(worker, self.tick(), 0, reads, group, committed))
        if group:
            self.commit(worker, partition, end)

    def commit(self, worker: str, partition: int, offset: int) -> None:
        began, ended = self.tick(), self.tick()
        self.operations.append(
            Commit(worker, began, ended, GROUP, TOPIC, partition, offset, Outcome.ACKNOWLEDGED)
        )
        self.operations.append(Committed(worker, self.tick(), GROUP, TOPIC, partition, offset))

    def read_all(self) -> None:
        for partition in range(PARTITIONS):
            self.read("reader", partition, 1_000_000)
            self.read("committed", partition, 1_000_000, committed=True)
            self.read("member", partition, 1_000_000, group=GROUP)
        self.operations.append(WholeRead("reader", self.tick(), TOPIC))


partitions = st.integers(0, PARTITIONS - 1)
outcomes = st.sampled_from(
    [(Outcome.ACKNOWLEDGED, True)] * 4
    + [(Outcome.UNKNOWN, True), (Outcome.UNKNOWN, False), (Outcome.FAILED, False)]
)
actions = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(PRODUCERS), partitions, outcomes),
    st.tuples(st.just("transact"), st.integers(2, 4), st.sampled_from(list(End))),
    st.tuples(st.just("read"), partitions, st.integers(1, 5)),
    st.tuples(st.just("fault"), st.sampled_from(["kill", "pause"])),
)


def play(cluster: SmallCluster, action: tuple) -> None:
    match action:
        case ("send", worker, partition, (outcome, arrives)):
            cluster.send(worker, partition, outcome, arrives)
        case ("transact", count, end):
            cluster.transact("x", count, end)
        case ("read", partition, count):
            cluster.read("reader", partition, count)
            cluster.read("committed", partition, count, committed=True)
            cluster.read("member", partition, count, group=GROUP)
        case ("fault", kind):
            cluster.operations.append(Fault(kind, "1", cluster.tick()))


@st.composite
def good_histories(draw: st.DrawFn) -> list[Operation]:
    cluster = SmallCluster()
    for partition in range(PARTITIONS):
        for _ in range(3):
            cluster.send("a", partition, Outcome.ACKNOWLEDGED, True)
    cluster.transact("x", 4, End.COMMITTED)
    cluster.transact("x", 4, End.ABORTED)
    for action in draw(st.lists(actions, max_size=30)):
        play(cluster, action)
    for partition in range(PARTITIONS):
        cluster.send("b", partition, Outcome.ACKNOWLEDGED, True)
    cluster.read_all()
    return cluster.operations
