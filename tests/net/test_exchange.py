from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.net.exchange import ExchangeQueue


@given(st.integers(0, 20), st.randoms(use_true_random=False))
def test_answers_go_out_in_the_order_of_the_requests(count: int, random: Random) -> None:
    sent: list[object] = []
    queue = ExchangeQueue(sent.append)
    exchanges = [queue.begin() for _ in range(count)]
    order = list(range(count))
    random.shuffle(order)

    for number in order:
        exchanges[number].answer([number])

    assert sent == [[number] for number in range(count)]
    assert len(queue) == 0


def test_a_request_without_answer_only_makes_way() -> None:
    sent: list[object] = []
    queue = ExchangeQueue(sent.append)
    first, silent, third = queue.begin(), queue.begin(), queue.begin()
    third.answer([b"3"])
    silent.answer(())
    assert (sent, len(queue)) == ([], 3)
    first.answer([b"1"])
    assert sent == [[b"1"], (), [b"3"]]


def test_a_second_answer_is_a_bug() -> None:
    queue = ExchangeQueue(lambda parts: None)
    queue.begin()
    exchange = queue.begin()
    exchange.answer([b"1"])
    with pytest.raises(AssertionError, match="answered once"):
        exchange.answer([b"2"])
