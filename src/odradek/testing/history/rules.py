"""The rules that a history must keep, after Jepsen's Kafka workload: each yields what contradicts it.

Unknown outcomes never break a rule by themselves: a record whose send timed out may be there or not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from odradek.testing.history.operations import Commit, Committed, End, Outcome, Read, Send
from odradek.testing.history.transaction_rules import stuck, torn_offset, torn_transaction, uncommitted_offset
from odradek.testing.history.view import PartitionView, Place, View
from odradek.testing.history.violation import Rule, Violation


def lost(view: View) -> Iterator[Violation]:
    """Acknowledged, below the highest offset that anybody read, and never read."""
    for place, send, partition in _never_read(view):
        if send.offset < partition.highest_read:
            yield Violation("lost", str(place), send.offset, f"{send.value} of {send.worker}")


def unseen(view: View) -> Iterator[Violation]:
    """Acknowledged, above everything that was read: never read by the end."""
    for place, send, partition in _never_read(view):
        if send.offset >= partition.highest_read:
            yield Violation("unseen", str(place), send.offset, f"{send.value} of {send.worker}")


def _never_read(view: View) -> Iterator[tuple[Place, Send, PartitionView]]:
    for place, partition in view.partitions.items():
        for send in partition.sends:
            if view.is_promised(send) and send.value not in partition.read:
                yield place, send, partition


def vanished(view: View) -> Iterator[Violation]:
    """Acknowledged, perhaps read before, and not found by a reader that read all of the topic afterwards."""
    for whole in view.history.whole_reads:
        read = view.values_of_reader[whole.worker]
        for send in view.history.sends:
            if send.topic == whole.topic and view.is_promised(send) and send.value not in read:
                place = str(Place(send.topic, send.partition))
                yield Violation("vanished", place, send.offset, f"{send.value}: not found by {whole.worker}")


def duplicate(view: View) -> Iterator[Violation]:
    """One value of an idempotent producer at two offsets."""
    for place, partition in view.partitions.items():
        for value, offsets in partition.offsets_of.items():
            send = view.send_of.get(value)
            if len(offsets) > 1 and send is not None and send.idempotent:
                yield Violation(
                    "duplicate", str(place), min(offsets), f"{value} also at {sorted(offsets)[1:]}"
                )


def inconsistent_offset(view: View) -> Iterator[Violation]:
    """Two values at one offset, over all acknowledgements and readers."""
    for place, partition in view.partitions.items():
        for offset, values in partition.values_at.items():
            if len(values) > 1:
                yield Violation("inconsistent offset", str(place), offset, " and ".join(sorted(values)))


def never_sent(view: View) -> Iterator[Violation]:
    """Read, though nobody sent it to this partition: a damaged or misplaced record."""
    for place, partition in view.partitions.items():
        for value in partition.read:
            send = view.send_of.get(value)
            if send is None and value.startswith(view.killed_prefixes):
                continue
            if send is not None and send.partition < 0 and send.topic == place.topic:
                continue  # its producer does not know which partition it chose
            if send is None or Place(send.topic, send.partition) != place:
                offset = min(partition.offsets_of[value])
                yield Violation("never sent", str(place), offset, value)


def aborted_read(view: View) -> Iterator[Violation]:
    """Read though its send failed for certain, or read committed though its transaction was aborted."""
    for poll in view.history.polls:
        for read in poll.reads:
            send = view.send_of.get(read.value)
            if send is None:
                continue
            if send.outcome is Outcome.FAILED:
                yield _by_reader("aborted read", poll.worker, read, "its send failed")
            elif poll.read_committed and view.end_of(send) is End.ABORTED:
                yield _by_reader("aborted read", poll.worker, read, f"{send.transaction} was aborted")


def reordered_send(view: View) -> Iterator[Violation]:
    """Two sends of one producer to one partition, the later one at a lower offset."""
    for place, partition in view.partitions.items():
        by_worker: dict[str, list[Send]] = defaultdict(list)
        for send in partition.sends:
            if send.ordered and partition.offsets_of.get(send.value):
                by_worker[send.worker].append(send)
        for sends in by_worker.values():
            sends.sort(key=lambda send: send.number)
            for earlier, later in pairwise(sends):
                first, second = (
                    min(partition.offsets_of[earlier.value]),
                    min(partition.offsets_of[later.value]),
                )
                if second < first:
                    found = f"{later.value}, but {earlier.value} before it at {first}"
                    yield Violation("reordered send", str(place), second, found)


def reordered_poll(view: View) -> Iterator[Violation]:
    """A reader whose position was not set reads an offset again, or goes back."""
    for (worker, _, _), reads in view.sessions.items():
        for earlier, later in pairwise(reads):
            if later.offset <= earlier.offset:
                yield _by_reader("reordered poll", worker, later, f"after offset {earlier.offset}")


def skipped(view: View) -> Iterator[Violation]:
    """A reader whose position was not set leaves out a record that is there."""
    visible: dict[tuple[Place, bool], list[int]] = {}
    for (worker, _, place), reads in view.sessions.items():
        key = (place, worker in view.committed_only)
        offsets = visible.get(key)
        if offsets is None:
            offsets = visible[key] = _visible_offsets(view, *key)
        for earlier, later in pairwise(reads):
            left, right = bisect_right(offsets, earlier.offset), bisect_left(offsets, later.offset)
            if left < right:
                found = f"leaves out {right - left} records from offset {offsets[left]}"
                yield _by_reader("skipped", worker, later, found)


def skipped_by_group(view: View) -> Iterator[Violation]:
    """A group read beyond a promised record, but no member of it ever read that."""
    for group, polls in view.polls_of_group.items():
        read: dict[Place, set[int]] = defaultdict(set)
        for poll in polls:
            for one in poll.reads:
                read[Place(one.topic, one.partition)].add(one.offset)
        for place, offsets in read.items():
            highest = max(offsets)
            for offset, values in view.partitions[place].values_at.items():
                if offset < highest and offset not in offsets and values <= view.promised:
                    yield Violation("skipped by group", str(place), offset, f"{min(values)}, group {group}")


def _visible_offsets(view: View, place: Place, read_committed: bool) -> list[int]:
    values_at = view.partitions[place].values_at
    if not read_committed:
        return sorted(values_at)
    return sorted(offset for offset, values in values_at.items() if values <= view.promised)


def committed_goes_back(view: View) -> Iterator[Violation]:
    """A group's committed offset is lower than one acknowledged before, without anybody resetting it."""
    highest = _HighestCommits(view)
    fetched: list[Commit | Committed] = [*view.history.committed]
    accepted = [
        commit
        for commit in view.history.commits
        if commit.outcome is Outcome.ACKNOWLEDGED and not commit.transaction
    ]
    for operation in fetched + accepted:
        before = highest.before(operation)
        if operation.offset < before:
            place = str(Place(operation.topic, operation.partition))
            found = f"group {operation.group}, after {before} ({operation.worker})"
            yield Violation("committed offset goes back", place, operation.offset, found)


class _HighestCommits:
    """The highest commit that was acknowledged before an operation began, and since the last reset."""

    def __init__(self, view: View) -> None:
        self._resets: dict[str, list[int]] = defaultdict(list)
        for reset in sorted(view.history.resets, key=lambda reset: reset.at_ms):
            self._resets[reset.group].append(reset.at_ms)
        self._ended: dict[tuple[str, int, Place], list[int]] = defaultdict(list)
        self._highest: dict[tuple[str, int, Place], list[int]] = defaultdict(list)
        effective = [(view.effective_ms(commit), commit) for commit in view.history.commits]
        known = [(at_ms, commit) for at_ms, commit in effective if at_ms is not None]
        for at_ms, commit in sorted(known, key=lambda one: one[0]):
            key = self._key(commit)
            before = self._highest[key][-1] if self._highest[key] else -1
            self._ended[key].append(at_ms)
            self._highest[key].append(max(before, commit.offset))

    def before(self, operation: Commit | Committed) -> int:
        """-1 if there is none."""
        key = self._key(operation)
        count = bisect_left(self._ended[key], operation.at_ms)
        return self._highest[key][count - 1] if count else -1

    def _key(self, operation: Commit | Committed) -> tuple[str, int, Place]:
        resets = bisect_right(self._resets[operation.group], operation.at_ms)
        return operation.group, resets, Place(operation.topic, operation.partition)


def _by_reader(rule: str, worker: str, read: Read, found: str) -> Violation:
    return Violation(
        rule, str(Place(read.topic, read.partition)), read.offset, f"{read.value}: {worker}: {found}"
    )


RULES: dict[str, Rule] = {
    "lost": lost,
    "unseen": unseen,
    "vanished": vanished,
    "duplicate": duplicate,
    "inconsistent offset": inconsistent_offset,
    "never sent": never_sent,
    "aborted read": aborted_read,
    "torn transaction": torn_transaction,
    "torn offset": torn_offset,
    "uncommitted offset": uncommitted_offset,
    "stuck": stuck,
    "reordered send": reordered_send,
    "reordered poll": reordered_poll,
    "skipped": skipped,
    "skipped by group": skipped_by_group,
    "committed offset goes back": committed_goes_back,
}
