from __future__ import annotations

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.transactions.admin import TransactionFilter, list_transactions, pattern_of
from transactions.given import Coordinator


def listed(coordinator: Coordinator, pattern: str | None) -> list[str]:
    wanted = TransactionFilter(pattern=pattern_of(pattern))
    return [one.transactional_id for one in list_transactions(coordinator.state, wanted, 0)]


def test_a_pattern_matches_whole_ids() -> None:
    coordinator = Coordinator()
    for name in ("orders-1", "orders-2", "my-orders-1"):
        coordinator.producer(name=name)
    assert listed(coordinator, "orders-[0-9]") == ["orders-1", "orders-2"]
    assert len(listed(coordinator, None)) == len(listed(coordinator, "")) == 3


def test_no_pattern_takes_longer_than_an_id_is_long() -> None:
    coordinator = Coordinator()
    coordinator.producer(name="a" * 10_000)
    assert listed(coordinator, "(a|a?)+$") == ["a" * 10_000]
    assert listed(coordinator, "(a+)+b$") == []


@pytest.mark.parametrize("pattern", ["[", "(?=a)", r"(a)\1"])
def test_what_re2_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as raised:
        pattern_of(pattern)
    assert raised.value.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
