"""The rules of transactions: whole or not at all, with their offsets, and decided in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from odradek.testing.history.operations import Commit, Committed, End, Ends, Fault, Outcome, Send
from odradek.testing.history.view import Place, View
from odradek.testing.history.violation import Violation


def torn_transaction(view: View) -> Iterator[Violation]:
    """Readers with read_committed saw a part of a transaction, but never the rest."""
    seen = _seen_at(view)
    for transaction, sends in _members(view).items():
        missing = [send for send in sends if send.value not in seen]
        if 0 < len(missing) < len(sends):
            first = missing[0]
            place = str(Place(first.topic, first.partition))
            found = f"{transaction}: {len(missing)} of {len(sends)} records are missing"
            yield Violation("torn transaction", place, first.offset, found)


def torn_offset(view: View) -> Iterator[Violation]:
    """A transaction's offset is in effect and none of its records is, or the other way round."""
    seen_at = _seen_at(view)
    members = _members(view)
    offsets = _offsets_by_place(view)
    for commit in view.history.commits:
        if not commit.transaction or commit.outcome is not Outcome.ACKNOWLEDGED:
            continue
        sends = members[commit.transaction]
        seen = [seen_at[send.value] for send in sends if send.value in seen_at]
        for fetched in view.fetched_by_group.get(_key(commit), ()):
            is_in_effect = fetched.offset == commit.offset and offsets[_key(commit)].count(commit.offset) == 1
            if is_in_effect and sends and not seen:
                found = f"is in effect, but no record of {commit.transaction} is"
            elif seen and fetched.at_ms > min(seen) and fetched.offset < commit.offset:
                found = f"not in effect ({fetched.offset} is), but records of {commit.transaction} are"
            else:
                continue
            yield _by_group("torn offset", commit, found)
            break


def uncommitted_offset(view: View) -> Iterator[Violation]:
    """A group has an offset that only an aborted transaction has committed."""
    ends = view.ends
    aborted: dict[tuple[str, Place], dict[int, Commit]] = defaultdict(dict)
    others: dict[tuple[str, Place], set[int]] = defaultdict(set)
    for commit in view.history.commits:
        if commit.transaction and ends.get(commit.transaction) is End.ABORTED:
            aborted[_key(commit)][commit.offset] = commit
        elif commit.outcome is not Outcome.FAILED:
            others[_key(commit)].add(commit.offset)
    for key, commits in aborted.items():
        for fetched in view.fetched_by_group.get(key, ()):
            if fetched.offset in commits and fetched.offset not in others[key]:
                commit = commits[fetched.offset]
                yield _by_group("uncommitted offset", commit, f"{commit.transaction} was aborted")


def stuck(view: View) -> Iterator[Violation]:
    """The last stable offset stays below a high watermark for longer than transactions may take."""
    by_place: dict[Place, list[Ends]] = defaultdict(list)
    for ends in view.history.ends:
        by_place[Place(ends.topic, ends.partition)].append(ends)
    for place, seen in by_place.items():
        seen.sort(key=lambda ends: ends.at_ms)
        behind = 0
        for index, ends in enumerate(seen):
            behind = max(behind, index)
            while behind < len(seen) and seen[behind].last_stable_offset < ends.high_watermark:
                behind += 1
            last = seen[behind - 1] if behind > index else ends
            took_ms = _without_faults(view.history.faults, ends.at_ms, last.at_ms)
            if took_ms > ends.within_ms:
                found = f"high watermark {ends.high_watermark}, and it is there after {took_ms} ms"
                yield Violation("stuck", str(place), last.last_stable_offset, found)
                break


def _without_faults(faults: Sequence[Fault], began_ms: int, ended_ms: int) -> int:
    """How much of this time nothing was broken."""
    passed, at_ms = 0, began_ms
    for fault in sorted(faults, key=lambda fault: fault.at_ms):
        passed += max(min(fault.at_ms, ended_ms) - at_ms, 0)
        at_ms = max(at_ms, fault.healed_ms)
    return passed + max(ended_ms - at_ms, 0)


def _members(view: View) -> dict[str, list[Send]]:
    """The acknowledged sends of each transaction."""
    members: dict[str, list[Send]] = defaultdict(list)
    for send in view.history.sends:
        if send.transaction and send.outcome is Outcome.ACKNOWLEDGED:
            members[send.transaction].append(send)
    return members


def _seen_at(view: View) -> dict[str, int]:
    """When a value was first read with read_committed."""
    seen: dict[str, int] = {}
    for poll in view.history.polls:
        if poll.read_committed:
            for read in poll.reads:
                seen[read.value] = min(poll.at_ms, seen.get(read.value, poll.at_ms))
    return seen


def _offsets_by_place(view: View) -> dict[tuple[str, Place], list[int]]:
    offsets: dict[tuple[str, Place], list[int]] = defaultdict(list)
    for commit in view.history.commits:
        offsets[_key(commit)].append(commit.offset)
    return offsets


def _key(operation: Commit | Committed) -> tuple[str, Place]:
    return operation.group, Place(operation.topic, operation.partition)


def _by_group(rule: str, commit: Commit, found: str) -> Violation:
    place = Place(commit.topic, commit.partition)
    return Violation(rule, f"{place} of group {commit.group}", commit.offset, found)
