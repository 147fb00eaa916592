"""Batches that a broker finds too large: halved until they fit, in order, and only what cannot fit fails."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.reading import read_back
from odradek import Admin, AsyncProducer, Producer
from odradek.client import broker_errors
from odradek.client.producer.batches.batch import ProducerBatch, RecordMetadata
from odradek.client.producer.batches.idempotence import MAX_SEQUENCE, PartitionOrder, ProducerId
from odradek.client.producer.batches.splitting import split_batch
from odradek.records.compression import Codec
from odradek.records.record import Record, read_records
from odradek.testing import Cluster

LIMIT_BYTES = 2000
FIRST_TIMESTAMP_MS = 1_000_000

headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=5)), max_size=2)
records = st.tuples(
    st.none() | st.binary(max_size=10),
    st.none() | st.binary(max_size=300),
    headers,
    st.integers(0, 2**41),
)


def finished_batch(contents: list[Any], number: tuple[int, int, int] = (-1, -1, -1)) -> ProducerBatch:
    batch = ProducerBatch("t", 0, 100_000, 0.0)
    for key, value, pairs, timestamp_ms in contents:
        assert batch.append(key, value, tuple(pairs), timestamp_ms, None) is not None
    batch.producer_id, batch.producer_epoch, batch.base_sequence = number
    batch.finish(Codec.NONE, None)
    return batch


def contents_of(batch: ProducerBatch) -> list[Any]:
    batch.finish(Codec.LZ4, None)
    found: list[Record] = read_records(batch.payload or b"", max_bytes=10**6)
    return [(one.key, one.value, list(one.headers), one.timestamp_ms) for one in found]


@given(contents=st.lists(records, min_size=2, max_size=20), first=st.integers(0, MAX_SEQUENCE))
def test_both_parts_together_are_the_batch(contents: list[Any], first: int) -> None:
    batch = finished_batch(contents, (7, 1, first))
    batch.reserved = 1001
    one, other = split_batch(batch)

    assert (one.reserved + other.reserved, one.created_ms) == (1001, batch.created_ms)
    assert (one.base_sequence, other.base_sequence) == (first, (first + one.count) % (MAX_SEQUENCE + 1))
    assert contents_of(one) + contents_of(other) == contents
    assert batch.current_batches() == [one, other]


def test_a_record_larger_than_all_others_ends_up_alone() -> None:
    batch = finished_batch([(None, b"x" * size, (), 0) for size in (10, 10, 5000, 10)])

    left, alone = [batch], []
    while left:
        part = left.pop(0)
        if part.count == 1:
            alone.append(part.size)
        else:
            if part.payload is None:
                part.finish(Codec.NONE, None)
            left = split_batch(part) + left

    assert [size > 5000 for size in alone] == [False, False, True, False]


def test_futures_callbacks_and_waiters_follow_their_record() -> None:
    batch = ProducerBatch("t", 0, 1000, 0.0)
    reported: list[tuple[BaseException | None, int]] = []

    def on_delivery(error: BaseException | None, metadata: RecordMetadata) -> None:
        reported.append((error, metadata.offset))

    futures = [batch.append(None, b"v" * 100, None, FIRST_TIMESTAMP_MS + n, on_delivery) for n in range(4)]
    done: list[Any] = []
    for future in futures:
        assert future is not None
        future.add_done_callback(done.append)
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(futures[3].result(30)))  # type: ignore[union-attr]
    waiting.start()
    batch.finish(Codec.NONE, None)
    one, other = split_batch(batch)
    problem = RuntimeError("too large")
    other.complete(70)
    assert [future.done() for future in futures if future] == [False, False, True, True]
    one.complete(-1, -1, problem)
    waiting.join(30)

    assert results == [RecordMetadata("t", 0, 71, FIRST_TIMESTAMP_MS + 3)]
    assert reported == [(None, 70), (None, 71), (problem, -1), (problem, -1)]
    assert done == [futures[2], futures[3], futures[0], futures[1]]
    with pytest.raises(TimeoutError):
        ProducerBatch("t", 0, 100, 0.0).future(0).result(0)


def test_parts_go_one_after_the_other_before_what_was_sent_behind_them() -> None:
    order, closed = PartitionOrder(5), deque([finished_batch([(None, b"v", (), 0)] * 4) for _ in range(3)])
    producer = ProducerId(7, 0)
    first = order.next_batch(closed, 0, producer)
    assert first is not None
    order.delivered(first)
    large, behind = order.next_batch(closed, 0, producer), order.next_batch(closed, 0, producer)
    assert large is not None
    assert behind is not None

    one, other = split_batch(large)
    order.split(large, [one, other])
    order.refused(behind, closed, 0)
    sent = []
    while (batch := order.next_batch(closed, 0, producer)) is not None:
        sent.append(batch)
        assert order.next_batch(closed, 0, producer) is None
        order.delivered(batch)

    assert [(part, part.base_sequence) for part in sent] == [(one, 4), (other, 6), (behind, 8)]


@pytest.fixture
def narrow(cluster: Cluster, topic: str) -> str:
    """A topic that takes only small batches."""
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic(topic, num_partitions=1, configs={"max.message.bytes": str(LIMIT_BYTES)})
    return topic


@pytest.mark.parametrize("settings", [{}, {"acks": 1, "max_in_flight_requests_per_connection": 1}])
def test_what_fits_arrives_in_order_and_what_does_not_fails_alone(
    cluster: Cluster, narrow: str, settings: dict[str, Any]
) -> None:
    reported: list[int] = []
    values = [b"%d" % number + b"." * 50 for number in range(1000)]
    values[500] = b"x" * (LIMIT_BYTES + 1)
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=50, **settings) as producer:
        futures = [
            producer.send(narrow, value, on_delivery=lambda _, metadata: reported.append(metadata.offset))
            for value in values
        ]
        assert producer.flush(60)
        assert all(future.done() for future in futures)
        with pytest.raises(broker_errors.MessageTooLarge):
            futures[500].result(0)
        offsets = [future.result(0).offset for future in futures[:500] + futures[501:]]
        assert offsets == list(range(999))
        assert sorted(reported) == [-1, *range(999)]
        counted = producer.statistics()
    assert counted.batches_split > 5
    assert (counted.records_delivered, counted.records_failed, counted.buffered_bytes) == (999, 1, 0)
    assert [record.value for record in read_back(cluster, narrow)[0]] == values[:500] + values[501:]


def test_rows_of_a_table_are_split_too(cluster: Cluster, narrow: str) -> None:
    values = [b"%d" % number for number in range(5000)]
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        delivered = producer.send_table(narrow, pa.table({"value": values})).result(60)
        assert producer.statistics().buffered_bytes == 0

    assert sum(rows.record_count for rows in delivered) == 5000
    assert [rows.offset for rows in delivered] == sorted({rows.offset for rows in delivered})
    assert [record.value for record in read_back(cluster, narrow)[0]] == values


def test_awaited_futures_follow_too(cluster: Cluster, narrow: str) -> None:
    async def scenario() -> None:
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap, linger_ms=50) as producer:
            futures = [await producer.send(narrow, b"v" * 100) for _ in range(100)]
            offsets = [(await future).offset for future in futures]
            assert offsets == list(range(100))
            table = pa.table({"value": [b"v" * 100] * 100})
            assert sum(rows.record_count for rows in await (await producer.send_table(narrow, table))) == 100

    asyncio.run(scenario())
