"""A good history breaks no rule; each way to spoil it is found, by the rule that is about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.testing.history.operations import (
    CLIENT_KILLED,
    Commit,
    Committed,
    End,
    Ends,
    Fault,
    History,
    Operation,
    Outcome,
    Poll,
    Read,
    Reset,
    Send,
    TransactionEnd,
    decode,
    encode,
)
from odradek.testing.history.verdict import check
from testing.history.good_histories import COPIERS, GROUP, SOURCE, TOPIC, WITHIN_MS, good_histories

Operations = list[Operation]
few = settings(max_examples=25)


def broken(operations: Operations) -> set[str]:
    verdict = check(History.of(operations))
    return {rule for rule, found in verdict.violations.items() if found}


def sends(operations: Operations, wanted: Callable[[Send], bool]) -> list[Send]:
    return [one for one in operations if isinstance(one, Send) and wanted(one)]


def is_plain(send: Send) -> bool:
    return send.outcome is Outcome.ACKNOWLEDGED and not send.transaction


def in_transaction(operations: Operations, end: End) -> Callable[[Send], bool]:
    ended = {one.transaction for one in operations if isinstance(one, TransactionEnd) and one.end is end}
    return lambda send: send.transaction in ended


def map_reads(
    operations: Operations, change: Callable[[Poll, Read], Read | None], only: str = ""
) -> Operations:
    """Every read record passed through a function; None takes it away."""
    changed: Operations = []
    for operation in operations:
        if isinstance(operation, Poll) and (not only or operation.worker == only):
            reads = (change(operation, read) for read in operation.reads)
            operation = replace(operation, reads=tuple(read for read in reads if read is not None))
        changed.append(operation)
    return changed


def without_value(operations: Operations, value: str, only: str = "") -> Operations:
    return map_reads(operations, lambda _, read: None if read.value == value else read, only)


@few
@given(good_histories())
def test_a_good_history_breaks_no_rule(operations):
    assert broken(operations) == set()


@few
@given(good_histories())
def test_every_operation_survives_its_line(operations):
    assert [decode(encode(operation)) for operation in operations] == operations


@few
@given(good_histories(), st.data())
def test_an_acknowledged_record_that_nobody_read_is_lost_or_unseen(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))
    last = max(one.offset for one in sends(operations, is_plain) if one.partition == send.partition)
    rule = "unseen" if send.offset == last else "lost"
    assert rule in broken(without_value(operations, send.value))


@few
@given(good_histories())
def test_records_of_a_committed_transaction_are_promised_too(operations):
    send = sends(operations, in_transaction(operations, End.COMMITTED))[0]
    assert "lost" in broken(without_value(operations, send.value))


@few
@given(good_histories(), st.data())
def test_a_record_that_was_read_and_is_gone_by_the_end_vanished(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))
    assert "vanished" in broken(without_value(operations, send.value, "reader"))


@few
@given(good_histories(), st.data())
def test_a_value_at_two_offsets_is_a_duplicate_with_idempotence_only(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))
    again = Poll("late", 10_000, 0, (Read(TOPIC, send.partition, 999_999, send.value),))
    assert "duplicate" in broken([*operations, again])

    careless = [replace(one, idempotent=False, ordered=False) if one == send else one for one in operations]
    assert "duplicate" not in broken([*careless, again])


@few
@given(good_histories(), st.data())
def test_two_values_at_one_offset_are_inconsistent(operations, data):
    first, second = data.draw(st.permutations(sends(operations, is_plain)))[:2]
    wrong = Poll("late", 10_000, 0, (Read(TOPIC, first.partition, first.offset, second.value),))
    assert "inconsistent offset" in broken([*operations, wrong])


@few
@given(good_histories(), st.data())
def test_a_value_that_nobody_sent_is_found(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))

    def damage(_: Poll, read: Read) -> Read:
        return read._replace(value="damaged-7") if read.value == send.value else read

    assert {"never sent", "inconsistent offset"} <= broken(map_reads(operations, damage))


def test_a_killed_producer_may_have_sent_what_it_could_not_record():
    poll = Poll("reader", 1, 0, (Read(TOPIC, 0, 0, "killed-7"),))
    assert broken([poll]) == {"never sent"}
    assert broken([poll, Fault(CLIENT_KILLED, "killed-", 0)]) == set()


def test_a_producer_may_not_know_the_partition_of_what_it_sent():
    unsure = Send("java", 1, TOPIC, -1, 1, "7.1", Outcome.UNKNOWN)
    read = Poll("reader", 2, 0, (Read(TOPIC, 2, 0, "7.1"),))
    elsewhere = Poll("reader", 2, 0, (Read("another", 2, 0, "7.1"),))
    assert broken([unsure, read]) == set()
    assert broken([unsure, elsewhere]) == {"never sent"}


@few
@given(good_histories(), st.data())
def test_a_value_in_another_partition_was_never_sent_there(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))
    elsewhere = Poll("late", 10_000, 0, (Read(TOPIC, send.partition + 7, 0, send.value),))
    assert "never sent" in broken([*operations, elsewhere])


@few
@given(good_histories(), st.data())
def test_a_read_of_a_failed_send_is_found(operations, data):
    send = data.draw(st.sampled_from(sends(operations, is_plain)))
    failed = [replace(one, outcome=Outcome.FAILED, offset=-1) if one == send else one for one in operations]
    assert "aborted read" in broken(failed)


@few
@given(good_histories(), st.data())
def test_a_committed_read_of_an_aborted_transaction_is_found(operations, data):
    send = data.draw(st.sampled_from(sends(operations, in_transaction(operations, End.ABORTED))))
    poll = Poll("late", 10_000, 0, (Read(TOPIC, send.partition, send.offset, send.value),), "", True)
    assert broken([*operations, replace(poll, read_committed=False)]) == set()
    assert "aborted read" in broken([*operations, poll])


@pytest.mark.parametrize("end", [End.COMMITTED, End.UNKNOWN])
@few
@given(operations=good_histories(), data=st.data())
def test_a_part_of_a_transaction_is_torn(end, operations, data):
    send = data.draw(st.sampled_from(sends(operations, in_transaction(operations, End.COMMITTED))))
    torn = without_value(operations, send.value, "committed")
    known = [
        replace(one, end=end)
        if isinstance(one, TransactionEnd) and one.transaction == send.transaction
        else one
        for one in torn
    ]
    assert "torn transaction" in broken(known)


@few
@given(good_histories(), st.data())
def test_a_later_send_at_a_lower_offset_is_reordered(operations, data):
    of_one = [one for one in sends(operations, is_plain) if one.worker == "a" and one.partition == 0]
    earlier, later = sorted(data.draw(st.permutations(of_one))[:2], key=lambda one: one.number)
    swapped = {earlier.value: later.number, later.value: earlier.number}
    changed = [
        replace(one, number=swapped.get(one.value, one.number)) if isinstance(one, Send) else one
        for one in operations
    ]
    assert "reordered send" in broken(changed)
    careless = [replace(one, ordered=False) if isinstance(one, Send) else one for one in changed]
    assert "reordered send" not in broken(careless)


@few
@given(good_histories(), st.booleans())
def test_a_reader_that_goes_back_is_found_unless_its_position_was_set(operations, position_was_set):
    polls = [one for one in operations if isinstance(one, Poll) and one.worker == "reader" and one.reads]
    again = replace(polls[0], at_ms=10_000, session=1 if position_was_set else 0)
    assert ("reordered poll" in broken([*operations, again])) != position_was_set


@few
@given(good_histories())
def test_a_poll_out_of_order_is_found(operations):
    first, second = sends(operations, is_plain)[:2]
    reads = tuple(Read(TOPIC, one.partition, one.offset, one.value) for one in (second, first))
    assert "reordered poll" in broken([*operations, Poll("late", 10_000, 0, reads)])


@few
@given(good_histories(), st.sampled_from(["reader", "committed"]), st.data())
def test_a_reader_that_leaves_out_a_record_is_found(operations, reader, data):
    of_one = [one for one in sends(operations, is_plain) if one.partition == 0]
    send = data.draw(st.sampled_from(of_one[1:-1]))
    assert "skipped" in broken(without_value(operations, send.value, reader))


@few
@given(good_histories(), st.data())
def test_a_group_that_leaves_out_a_record_over_all_members_is_found(operations, data):
    of_one = [one for one in sends(operations, is_plain) if one.partition == 0]
    send = data.draw(st.sampled_from(of_one[:-1]))
    assert "skipped by group" in broken(without_value(operations, send.value, "member"))

    other = Poll("second", 10_000, 0, (Read(TOPIC, 0, send.offset, send.value),), GROUP)
    assert "skipped by group" not in broken([*without_value(operations, send.value, "member"), other])


@few
@given(good_histories(), st.booleans(), st.booleans())
def test_a_committed_offset_that_goes_back_is_found_unless_reset(operations, by_commit, was_reset):
    resets: Operations = [Reset(9_999, GROUP)] if was_reset else []
    back = Commit("member", 10_000, 10_001, GROUP, TOPIC, 0, 0, Outcome.ACKNOWLEDGED)
    fetched = Committed("member", 10_000, GROUP, TOPIC, 0, 0)
    found = broken([*operations, *resets, back if by_commit else fetched])
    assert ("committed offset goes back" in found) != was_reset


def commits_in(operations: Operations, end: End) -> list[Commit]:
    ended = {one.transaction for one in operations if isinstance(one, TransactionEnd) and one.end is end}
    return [one for one in operations if isinstance(one, Commit) and one.transaction in ended]


@few
@given(good_histories(), st.data())
def test_an_offset_of_a_committed_transaction_that_is_not_there_goes_back(operations, data):
    commit = data.draw(st.sampled_from(commits_in(operations, End.COMMITTED)))
    fetched = Committed("late", 10_000, COPIERS, SOURCE, 0, commit.offset - 1)
    assert "committed offset goes back" in broken([*operations, fetched])


@few
@given(good_histories(), st.data())
def test_an_offset_of_an_aborted_transaction_is_found(operations, data):
    commit = data.draw(st.sampled_from(commits_in(operations, End.ABORTED)))
    fetched = Committed("late", commit.ended_ms, COPIERS, SOURCE, 0, commit.offset)
    assert "uncommitted offset" in broken([*operations, fetched])
    by_others = replace(commit, worker="other", transaction="", outcome=Outcome.UNKNOWN)
    assert "uncommitted offset" not in broken([*operations, fetched, by_others])


def with_end_unknown(operations: Operations, transaction: str) -> Operations:
    return [
        replace(one, end=End.UNKNOWN)
        if isinstance(one, TransactionEnd) and one.transaction == transaction
        else one
        for one in operations
    ]


@few
@given(good_histories(), st.data())
def test_an_offset_without_the_records_of_its_transaction_is_torn(operations, data):
    commit = data.draw(st.sampled_from(commits_in(operations, End.ABORTED)))
    unknown = with_end_unknown(operations, commit.transaction)
    assert broken(unknown) == set()
    fetched = Committed("late", 10_000, COPIERS, SOURCE, 0, commit.offset)
    assert "torn offset" in broken([*unknown, fetched])


@few
@given(good_histories(), st.data())
def test_records_without_the_offset_of_their_transaction_are_torn(operations, data):
    commit = data.draw(st.sampled_from(commits_in(operations, End.COMMITTED)))
    unknown = with_end_unknown(operations, commit.transaction)
    before = Committed("early", 0, COPIERS, SOURCE, 0, 0)
    assert "torn offset" not in broken([*unknown, before])
    assert "torn offset" in broken([*unknown, replace(before, at_ms=10_000)])


@few
@given(good_histories(), st.sampled_from([0, WITHIN_MS]))
def test_a_last_stable_offset_that_stays_behind_for_too_long_is_stuck(operations, broken_ms):
    offset, began_ms = 999_999, 10_000
    seen = Ends("look", began_ms, TOPIC, 0, 0, offset, WITHIN_MS)
    later = replace(seen, at_ms=began_ms + WITHIN_MS + 1)
    fault = Fault("kill", "1", began_ms, began_ms + broken_ms)
    assert ("stuck" in broken([*operations, seen, fault, later])) == (broken_ms == 0)
    in_time = replace(seen, at_ms=began_ms + WITHIN_MS, last_stable_offset=offset)
    assert "stuck" not in broken([*operations, seen, in_time, replace(later, last_stable_offset=offset)])


def test_an_unknown_commit_promises_nothing():
    unknown = Commit("m", 1, 2, GROUP, TOPIC, 0, 50, Outcome.UNKNOWN)
    assert broken([unknown, Committed("m", 5, GROUP, TOPIC, 0, 10)]) == set()
    assert broken([replace(unknown, outcome=Outcome.ACKNOWLEDGED), Committed("m", 5, GROUP, TOPIC, 0, 10)])


def test_a_commit_that_was_under_way_may_be_missed():
    commit = Commit("m", 1, 9, GROUP, TOPIC, 0, 50, Outcome.ACKNOWLEDGED)
    assert broken([commit, Committed("m", 5, GROUP, TOPIC, 0, 10)]) == set()


@few
@given(good_histories())
def test_the_verdict_counts_what_was_done(operations):
    verdict = check(History.of(operations), seed=7, duration_ms=61_000)
    unknown = sends(operations, lambda send: send.outcome is Outcome.UNKNOWN)
    faults = [one for one in operations if isinstance(one, Fault)]
    assert verdict.is_good
    assert verdict.counts.sends == len(sends(operations, lambda _: True))
    assert verdict.counts.unknown_share == len(unknown) / verdict.counts.sends
    assert sum(verdict.counts.faults.values()) == len(faults)
    assert verdict.lines()[0] == "seed 7, 61 s"
    assert verdict.lines()[-1] == "no rule was broken"


def test_a_broken_rule_is_named_with_an_example():
    poll = Poll("reader", 1, 0, (Read(TOPIC, 3, 12, "ghost-1"),))
    lines = check(History.of([poll])).lines()
    assert "never sent: 1" in lines
    assert "    never sent: t-3 at offset 12: ghost-1" in lines
