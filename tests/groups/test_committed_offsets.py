from __future__ import annotations

import pytest

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
