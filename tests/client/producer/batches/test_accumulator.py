"""Batches per partition, compiled and interpreted: what is full or has lingered, whose turn, whose memory."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.client.producer.batches import accumulator as compiled
from odradek.client.producer.batches.batch import ProducerBatch
from odradek.records.batch import read_header
from odradek.records.compression import Codec
from odradek.records.kernels.hashes import murmur2, to_positive
from odradek.records.record import read_records

NUMBER = (7, 1, 5)


def interpreted() -> ModuleType:
    source = Path(__file__).parents[4] / "src/odradek/client/producer/batches/accumulator.py"
    loader = SourceFileLoader("interpreted_accumulator", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


BUILDS = {"compiled": compiled, "interpreted": interpreted()}


@pytest.fixture(params=list(BUILDS))
def way(request: pytest.FixtureRequest) -> ModuleType:
    return BUILDS[request.param]


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0.0


def an_accumulator(way: ModuleType, clock: Clock | None = None, **settings: Any) -> Any:
    usual = {"batch_size": 1000, "buffer_memory": 100_000, "max_request_size": 50_000}
    time = clock or Clock()
    return way.Accumulator(
        **{**usual, **settings}, randrange=lambda sides: sides - 1, now_ms=lambda: time.now_ms
    )


def send(accumulator: Any, value: bytes, key: bytes | None = None, partition: int | None = None) -> Any:
    return accumulator.send("t", value, key, partition, None, 1000, None)


def values(batch: ProducerBatch) -> list[bytes | None]:
    batch.producer_id, batch.producer_epoch, batch.base_sequence = NUMBER
    batch.finish(Codec.NONE, None)
    assert batch.payload is not None
    return [record.value for record in read_records(batch.payload, max_bytes=10**6)]


def test_a_record_that_does_not_fit_closes_the_batch(way: ModuleType) -> None:
    accumulator = an_accumulator(way)
    topic = accumulator.topic("t", 1, [0])
    for number in range(3):
        assert send(accumulator, b"%d" % number * 400) is not None

    (queue,) = topic.queues
    assert [batch.count for batch in queue.closed] == [2]
    assert queue.open.count == 1
    assert accumulator.take_ready() == [queue]
    assert accumulator.take_ready() == []
    assert values(queue.closed[0]) == [b"0" * 400, b"1" * 400]


def test_an_unknown_topic_partition_or_type_is_left_to_the_caller(way: ModuleType) -> None:
    accumulator = an_accumulator(way)
    assert send(accumulator, b"v") is None
    accumulator.topic("t", 1, [0])

    assert send(accumulator, b"v", partition=1) is None
    assert send(accumulator, "text") is None  # type: ignore[arg-type]
    assert send(accumulator, b"x" * 60_000) is None
    assert send(accumulator, b"v") is not None


def test_a_batch_lingers_and_no_longer(way: ModuleType) -> None:
    clock = Clock()
    accumulator = an_accumulator(way, clock)
    accumulator.topic("t", 1, [0])
    send(accumulator, b"v")

    accumulator.close_lingered(5, now_ms=4.9)
    assert accumulator.take_ready() == []
    assert accumulator.prepare_to_wait(5) == 5.0
    accumulator.close_lingered(5, now_ms=5.0)
    assert len(accumulator.take_ready()) == 1


def test_the_sender_is_woken_once_for_a_first_batch_and_once_for_a_full_one(way: ModuleType) -> None:
    accumulator, woken = an_accumulator(way), []
    accumulator.wake = lambda: woken.append(1)
    accumulator.topic("t", 1, [0])
    accumulator.prepare_to_wait(5)
    send(accumulator, b"v")
    send(accumulator, b"v")
    assert len(woken) == 1
    accumulator.prepare_to_wait(5)
    send(accumulator, b"x" * 2000)
    assert len(woken) == 2


def test_behind_a_crowd_of_batches_larger_ones_are_made_until_it_is_gone(way: ModuleType) -> None:
    accumulator = an_accumulator(way, buffer_memory=1_000_000)
    queue = accumulator.topic("t", 1, [0]).queues[0]

    for _ in range(3 * way.MANY_CLOSED_BATCHES + 4 * way.ENLARGED_BATCH_FACTOR):
        send(accumulator, b"x" * 300)
    sizes = [batch.count for batch in queue.closed]
    queue.closed.clear()
    send(accumulator, b"x" * 8000)
    send(accumulator, b"x" * 300)

    assert sizes[: way.MANY_CLOSED_BATCHES] == [3] * way.MANY_CLOSED_BATCHES
    assert sizes[way.MANY_CLOSED_BATCHES] > 3 * (way.ENLARGED_BATCH_FACTOR - 1)
    assert queue.open.reserved == accumulator.batch_size


def test_larger_batches_never_take_memory_that_smaller_ones_could_do_with(way: ModuleType) -> None:
    little = an_accumulator(way, buffer_memory=20_000)
    plenty = an_accumulator(way, buffer_memory=600_000)
    plenty.topic("t", 1, [0])

    while send(plenty, b"x" * 300) is not None:
        pass

    assert little.enlarged_batch_size == little.batch_size < plenty.enlarged_batch_size
    assert plenty.memory_left < plenty.batch_size


def test_keys_choose_as_java_and_the_others_stick_until_a_batch_is_full(way: ModuleType) -> None:
    accumulator = an_accumulator(way)
    topic = accumulator.topic("t", 4, [0, 1, 2, 3])
    for number in range(50):
        send(accumulator, b"v", key=b"%d" % number)
    counts = [queue.open.count if queue.open else 0 for queue in topic.queues]
    expected = [to_positive(murmur2(b"%d" % number)) % 4 for number in range(50)]
    assert counts == [expected.count(partition) for partition in range(4)]

    other = an_accumulator(way)
    topic = other.topic("t", 4, [0, 3])
    for _ in range(12):
        send(other, b"x" * 300)
    full = [sum(batch.count for batch in queue.closed) for queue in topic.queues]
    assert full[1] == full[2] == 0, "partitions without a leader are left alone"
    assert all(batch.count == 3 for queue in topic.queues for batch in queue.closed)


def test_memory_is_lent_by_the_batch_and_given_back(way: ModuleType) -> None:
    accumulator = an_accumulator(way, buffer_memory=2500)
    topic = accumulator.topic("t", 3, [0, 1, 2])
    assert send(accumulator, b"v", partition=0) is not None
    assert send(accumulator, b"v", partition=1) is not None
    assert accumulator.memory_left == 500
    assert send(accumulator, b"v", partition=2) is None
    assert not accumulator.wait_for_memory(1000, 0)

    accumulator.unfinished()  # closed batches keep only what they use
    assert accumulator.memory_left > 2300
    for queue in topic.queues:
        for batch in queue.closed:
            accumulator.complete(batch, 0)
    assert accumulator.memory_left == 2500
    assert accumulator.oldest() is None


def test_the_fate_of_a_batch_is_that_of_its_records(way: ModuleType) -> None:
    accumulator, reported = an_accumulator(way), []
    topic = accumulator.topic("t", 1, [0])

    def on_delivery(error: BaseException | None, metadata: Any) -> None:
        reported.append((error, metadata.offset, metadata.timestamp))

    futures = [accumulator.send("t", b"v", None, 0, None, 1000 + number, on_delivery) for number in range(3)]
    (batch,) = accumulator.unfinished()
    assert batch is topic.queues[0].closed[0]
    with pytest.raises(TimeoutError):
        futures[0].result(0)
    accumulator.complete(batch, 40)

    assert reported == [(None, 40, 1000), (None, 41, 1001), (None, 42, 1002)]
    assert [future.result(0).offset for future in futures] == [40, 41, 42]
    accumulator.complete(batch, 99)
    assert futures[0].result(0).offset == 40, "a result is set once"


def test_a_failed_batch_fails_its_records(way: ModuleType) -> None:
    accumulator = an_accumulator(way)
    accumulator.topic("t", 1, [0])
    future = send(accumulator, b"v")
    accumulator.fail_all(OSError("gone"))

    with pytest.raises(OSError, match="gone"):
        future.result(0)
    assert isinstance(future.exception(0), OSError)


def test_after_a_refusal_nothing_is_taken(way: ModuleType) -> None:
    accumulator = an_accumulator(way)
    accumulator.topic("t", 1, [0])
    accumulator.fail_sends(OSError("closed"))

    assert send(accumulator, b"v") is None
    assert str(accumulator.problem) == "closed"


RECORDS = st.tuples(
    st.none() | st.binary(max_size=20), st.none() | st.binary(max_size=300), st.integers(0, 2)
)


@given(records=st.lists(RECORDS, max_size=60), name=st.sampled_from(sorted(BUILDS)))
def test_whatever_is_sent_comes_out_in_order_in_batches_that_fit(
    records: list[tuple[bytes | None, bytes | None, int]], name: str
) -> None:
    accumulator = an_accumulator(BUILDS[name])
    topic = accumulator.topic("t", 3, [0, 1, 2])
    for key, value, partition in records:
        assert accumulator.send("t", value, key, partition, None, 1000, None) is not None
    accumulator.unfinished()

    for partition, queue in enumerate(topic.queues):
        found = []
        for batch in queue.closed:
            batch.producer_id, batch.producer_epoch, batch.base_sequence = NUMBER
            batch.finish(Codec.NONE, None)
            assert len(batch.payload) <= 1000
            header = read_header(batch.payload)
            assert (header.producer_id, header.producer_epoch, header.base_sequence) == NUMBER
            found += [(one.key, one.value) for one in read_records(batch.payload, max_bytes=10**6)]
        assert found == [(key, value) for key, value, number in records if number == partition]
