from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.ids import TopicPartition
from odradek.groups.committed import OffsetAndMetadata
from odradek.groups.committed_offsets import CommittedOffsets

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)
FIRST, SECOND = 7, 8


def at(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, -1, "", 0)


@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_of_a_transaction_are_pending_until_it_has_ended(is_commit: bool) -> None:
    offsets = CommittedOffsets()
    offsets.put("g", ORDERS, at(1))
    offsets.put_pending(FIRST, "g", ORDERS, at(5))
    offsets.put_pending(FIRST, "g", ORDERS, at(6))
    assert (offsets.is_pending("g", ORDERS), offsets.has_pending("g")) == (True, True)
    assert (offsets.is_pending("g", PAYMENTS), offsets.has_pending("other")) == (False, False)
    assert offsets.of("g")[ORDERS] == at(1)

    offsets.end_transaction(FIRST, is_commit=is_commit)
    assert (offsets.is_pending("g", ORDERS), offsets.has_pending("g")) == (False, False)
    assert offsets.of("g")[ORDERS] == at(6 if is_commit else 1)


def test_an_offset_stays_pending_while_any_transaction_may_change_it() -> None:
    offsets = CommittedOffsets()
    offsets.put_pending(FIRST, "g", ORDERS, at(5))
    offsets.put_pending(SECOND, "g", ORDERS, at(6))
    offsets.put_pending(SECOND, "g", PAYMENTS, None)

    offsets.end_transaction(SECOND, is_commit=False)
    assert (offsets.is_pending("g", ORDERS), offsets.is_pending("g", PAYMENTS)) == (True, False)
    offsets.end_transaction(FIRST, is_commit=True)
    assert not offsets.has_pending("g")
    offsets.end_transaction(FIRST, is_commit=True)
    assert offsets.of("g") == {ORDERS: at(5)}


def test_a_newer_commit_outlives_the_end_of_an_older_transaction() -> None:
    offsets = CommittedOffsets()
    offsets.put_pending(FIRST, "g", ORDERS, at(5))
    offsets.put("g", ORDERS, at(9))
    assert offsets.is_pending("g", ORDERS)
    offsets.end_transaction(FIRST, is_commit=True)
    assert offsets.of("g")[ORDERS] == at(9)


def test_of_two_transactions_the_offset_that_was_written_last_counts_however_they_end() -> None:
    offsets = CommittedOffsets()
    offsets.put_pending(FIRST, "g", ORDERS, at(5))
    offsets.put_pending(SECOND, "g", ORDERS, at(9))
    offsets.end_transaction(SECOND, is_commit=True)
    assert offsets.of("g")[ORDERS] == at(9)
    offsets.end_transaction(FIRST, is_commit=True)
    assert offsets.of("g")[ORDERS] == at(9)


def test_a_transaction_that_writes_after_a_commit_counts() -> None:
    offsets = CommittedOffsets()
    offsets.put_pending(FIRST, "g", ORDERS, at(5))
    offsets.put("g", ORDERS, at(9))
    offsets.put_pending(FIRST, "g", ORDERS, at(6))
    offsets.end_transaction(FIRST, is_commit=True)
    assert offsets.of("g")[ORDERS] == at(6)


def test_what_is_deleted_does_not_come_back_when_a_transaction_is_committed() -> None:
    offsets = CommittedOffsets()
    offsets.put("g", ORDERS, at(1))
    for producer_id in (FIRST, SECOND):
        offsets.put_pending(producer_id, "g", ORDERS, at(5))
    offsets.put_pending(SECOND, "g", PAYMENTS, at(6))
    assert list(offsets.partitions_of("g")) == [ORDERS, PAYMENTS]
    offsets.put("g", ORDERS, None)
    assert not offsets.is_pending("g", ORDERS)
    for producer_id in (FIRST, SECOND):
        offsets.end_transaction(producer_id, is_commit=True)
    assert offsets.of("g") == {PAYMENTS: at(6)}


records = st.one_of(
    st.tuples(st.just("plain"), st.integers(1, 9) | st.none()),
    st.tuples(st.just("pending"), st.integers(1, 9), st.sampled_from([FIRST, SECOND])),
    st.tuples(st.just("end"), st.booleans(), st.sampled_from([FIRST, SECOND])),
)


@given(st.lists(records, max_size=12))
def test_a_compacted_log_comes_to_the_same(log: list[tuple[Any, ...]]) -> None:
    """Compaction keeps all ends, and of the offsets the newest one that is not aborted."""

    def replayed(kept: list[tuple[Any, ...]]) -> tuple[Any, bool]:
        offsets = CommittedOffsets()
        for what, value, *producer in kept:
            if what == "plain":
                offsets.put("g", ORDERS, value and at(value))
            elif what == "pending":
                offsets.put_pending(producer[0], "g", ORDERS, at(value))
            else:
                offsets.end_transaction(producer[0], is_commit=value)
        for producer_id in (FIRST, SECOND):
            offsets.end_transaction(producer_id, is_commit=False)
        return offsets.of("g").get(ORDERS), offsets.is_pending("g", ORDERS)

    def is_committed(place: int) -> bool:
        what, _, *producer = log[place]
        ends = (end[1] for end in log[place + 1 :] if end[0] == "end" and [end[2]] == producer)
        return what == "plain" or (what == "pending" and next(ends, False))

    newest = max(filter(is_committed, range(len(log))), default=-1)
    assert replayed(log) == replayed([one for n, one in enumerate(log) if one[0] == "end" or n == newest])
