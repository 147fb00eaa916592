"""The order of a partition's batches and their numbers, against a broker that is picky about them."""

from __future__ import annotations

from collections import deque

import hypothesis.strategies as st
from hypothesis import given

from odradek.client.producer.batches.batch import ProducerBatch
from odradek.client.producer.batches.idempotence import MAX_EPOCH, MAX_SEQUENCE, PartitionOrder, ProducerId
from odradek.records.batch import HEADER_SIZE

PRODUCER = ProducerId(7, 0)


def a_batch(records: int = 1) -> ProducerBatch:
    batch = ProducerBatch("t", 0, 4096, 0.0)
    for _ in range(records):
        assert batch.append(None, b"v", None, 0, None) is not None
    return batch


def a_known_order(max_in_flight: int = 5, records: int = 1) -> PartitionOrder:
    """The broker has a batch of this producer already, with so many records."""
    order = PartitionOrder(max_in_flight)
    batch = ProducerBatch("t", 0, 4096, 0.0)
    batch.set_encoded(bytearray(HEADER_SIZE), records, 0, 0)
    first = order.next_batch(deque([batch]), 0, PRODUCER)
    assert first is batch
    order.delivered(batch)
    return order


def number(batch: ProducerBatch) -> tuple[int, int]:
    return batch.producer_epoch, batch.base_sequence


def test_sequences_continue_by_the_number_of_records() -> None:
    order, closed = a_known_order(5), deque([a_batch(3), a_batch(2), a_batch(1)])

    sent = [order.next_batch(closed, 0, PRODUCER) for _ in range(3)]

    assert [number(batch) for batch in sent if batch] == [(0, 1), (0, 4), (0, 6)]


def test_a_batch_that_was_not_sent_after_all_goes_first_with_its_number() -> None:
    order, closed = a_known_order(5), deque([a_batch(3), a_batch(2)])
    first = order.next_batch(closed, 0, PRODUCER)
    assert first is not None

    order.put_back(first)
    again = [order.next_batch(closed, 0, PRODUCER) for _ in range(2)]

    assert again[0] is first
    assert [number(batch) for batch in again if batch] == [(0, 1), (0, 4)]
    assert first.attempts == 0


def test_sequences_wrap_as_javas_do() -> None:
    order, closed = a_known_order(5, MAX_SEQUENCE), deque([a_batch(2), a_batch(1)])

    sent = [order.next_batch(closed, 0, PRODUCER) for _ in range(2)]

    assert [number(batch) for batch in sent if batch] == [(0, MAX_SEQUENCE), (0, 1)]


def test_the_first_batch_of_a_producer_goes_alone() -> None:
    order, closed = PartitionOrder(5), deque([a_batch(), a_batch(), a_batch()])
    first = order.next_batch(closed, 0, PRODUCER)
    assert first

    assert order.next_batch(closed, 0, PRODUCER) is None
    order.delivered(first)
    assert [order.next_batch(closed, 0, PRODUCER) is not None for _ in range(2)] == [True, True]


def test_no_more_batches_in_flight_than_allowed() -> None:
    order, closed = PartitionOrder(2), deque([a_batch(), a_batch(), a_batch()])
    first = order.next_batch(closed, 0, PRODUCER)
    order.next_batch(closed, 0, PRODUCER)

    assert order.next_batch(closed, 0, PRODUCER) is None
    assert first is not None
    order.delivered(first)
    assert order.next_batch(closed, 0, PRODUCER) is not None


def test_a_repetition_goes_before_anything_new_and_keeps_its_number() -> None:
    order, closed = a_known_order(5), deque([a_batch(), a_batch(), a_batch()])
    first, second = order.next_batch(closed, 0, PRODUCER), order.next_batch(closed, 0, PRODUCER)
    assert first
    assert second
    order.repeat(second, 0)

    assert order.next_batch(closed, 0, PRODUCER) is None, "the first is not answered yet"
    order.repeat(first, 100)
    assert order.next_batch(closed, 99, PRODUCER) is None, "the pause is not over"
    assert order.next_batch(closed, 100, PRODUCER) is first
    assert order.next_batch(closed, 100, PRODUCER) is None, "one at a time"
    order.delivered(first)
    assert order.next_batch(closed, 100, PRODUCER) is second
    assert number(second) == (0, 2)


def test_a_new_batch_after_a_failed_one_waits_and_begins_an_epoch() -> None:
    order, closed = a_known_order(5), deque([a_batch(), a_batch(), a_batch()])
    first, second = order.next_batch(closed, 0, PRODUCER), order.next_batch(closed, 0, PRODUCER)
    assert first
    assert second
    order.failed(first)

    assert order.next_batch(closed, 0, PRODUCER) is None, "the second may still be written or not"
    order.refused(second, closed, 0)
    again = order.next_batch(closed, 0, PRODUCER)
    assert again is second
    order.delivered(again)
    third = order.next_batch(closed, 0, PRODUCER)
    assert third
    assert [number(again), number(third)] == [(1, 0), (1, 1)]


def test_without_numbers_a_failure_holds_nothing_up() -> None:
    order, closed = PartitionOrder(5), deque([a_batch(), a_batch()])
    first = order.next_batch(closed, 0, None)
    assert first
    order.failed(first)

    second = order.next_batch(closed, 0, None)
    assert second
    assert number(second) == (-1, -1)


def test_the_last_epoch_asks_for_another_producer_id() -> None:
    order, closed = PartitionOrder(5), deque([a_batch(), a_batch()])
    first = order.next_batch(closed, 0, ProducerId(7, MAX_EPOCH - 1))
    assert first
    assert not order.is_exhausted
    order.failed(first)
    assert order.is_exhausted

    second = order.next_batch(closed, 0, ProducerId(8, 0))
    assert second
    assert (second.producer_id, number(second)) == (8, (0, 0))


class PickyBroker:
    """What a leader keeps of one producer: it takes the next sequence, or 0 of a later epoch."""

    def __init__(self) -> None:
        self.written: list[ProducerBatch] = []
        self.numbers: list[tuple[int, int]] = []
        self.epoch, self.next_sequence = -1, 0

    def receive(self, batch: ProducerBatch) -> str:
        if number(batch) in self.numbers:
            return "duplicate"
        is_next = batch.producer_epoch == self.epoch and batch.base_sequence == self.next_sequence
        if not is_next and not (batch.producer_epoch > self.epoch and batch.base_sequence == 0):
            return "refused"
        self.epoch, self.next_sequence = batch.producer_epoch, batch.base_sequence + batch.count
        self.written.append(batch)
        self.numbers.append(number(batch))
        return "written"


FATES = st.sampled_from(["answered", "answer lost", "request lost", "expired", "expired after writing"])


@given(fates=st.lists(FATES, max_size=60), sizes=st.lists(st.integers(1, 3), min_size=1, max_size=12))
def test_whatever_gets_lost_nothing_is_written_twice_or_overtakes(fates: list[str], sizes: list[int]) -> None:
    batches = [a_batch(size) for size in sizes]
    order, closed, broker = PartitionOrder(5), deque(batches), PickyBroker()
    fates, given_up = list(fates), []
    while closed or order.sent:
        round_trip = []
        while (batch := order.next_batch(closed, 0, PRODUCER)) is not None:
            round_trip.append(batch)
        for batch in round_trip:
            fate = fates.pop() if fates else "answered"
            is_received = fate not in ("request lost", "expired")
            outcome = broker.receive(batch) if is_received else "lost"
            if fate.startswith("expired"):
                order.failed(batch)
                given_up.append(batch)
            elif fate != "answered":
                order.repeat(batch, 0)
            elif outcome == "refused":
                order.refused(batch, closed, 0)
            else:
                order.delivered(batch)

    assert [batch for batch in batches if batch in broker.written] == broker.written
    assert set(batches) - set(broker.written) <= set(given_up)
