"""A producer's batch: records go in until it is full, and its futures have their results."""

from __future__ import annotations

import pytest

from odradek.client.producer.batches.batch import DeliveryFuture, ProducerBatch, RecordMetadata
from odradek.records.batch import read_header
from odradek.records.compression import Codec
from odradek.records.record import read_records

TIME_MS = 1_700_000_000_000
LIMIT = 1_000_000
Delivery = tuple[BaseException | None, RecordMetadata]


def a_batch(capacity: int = 4096) -> ProducerBatch:
    return ProducerBatch("orders", 2, capacity, 0.0)


def append(
    batch: ProducerBatch, value: bytes, timestamp_ms: int = TIME_MS, log: list[Delivery] | None = None
) -> DeliveryFuture:
    on_delivery = None if log is None else lambda error, metadata: log.append((error, metadata))
    future = batch.append(b"key", value, None, timestamp_ms, on_delivery)
    assert future is not None
    return future


@pytest.mark.parametrize("codec", list(Codec))
def test_a_finished_batch_has_the_records_that_were_appended(codec: Codec) -> None:
    batch = a_batch()
    for number in range(3):
        append(batch, b"value %d" % number, TIME_MS + number)
    batch.producer_id, batch.producer_epoch, batch.base_sequence = 7, 1, 40

    batch.finish(codec, None)

    assert batch.payload is not None
    header = read_header(batch.payload)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 40)
    assert (header.record_count, header.max_timestamp_ms) == (3, TIME_MS + 2)
    records = read_records(batch.payload, max_bytes=LIMIT)
    assert [(record.value, record.timestamp_ms) for record in records] == [
        (b"value %d" % number, TIME_MS + number) for number in range(3)
    ]


def test_a_record_that_does_not_fit_leaves_the_batch_as_it_was() -> None:
    batch = a_batch(capacity=200)
    append(batch, b"x" * 50)
    size = batch.size

    assert batch.append(None, b"x" * 200, None, TIME_MS, None) is None

    assert (batch.count, batch.size) == (1, size)
    append(batch, b"x")


def test_futures_have_the_offsets_of_their_records() -> None:
    batch = a_batch()
    futures = [append(batch, b"v", TIME_MS + number) for number in range(3)]
    assert not any(future.done() for future in futures)

    assert batch.complete(100)

    assert [future.result(0) for future in futures] == [
        RecordMetadata("orders", 2, 100 + number, TIME_MS + number) for number in range(3)
    ]


def test_the_log_append_time_replaces_the_times_of_the_records() -> None:
    batch = a_batch()
    future = append(batch, b"v")

    batch.complete(100, log_append_time_ms=TIME_MS + 5)

    assert future.result(0).timestamp == TIME_MS + 5


def test_a_record_that_the_broker_names_has_an_error_of_its_own() -> None:
    batch = a_batch()
    named, other = append(batch, b"a"), append(batch, b"b")
    batch.record_errors = {0: ValueError("no key")}

    batch.complete(-1, error=RuntimeError("refused"))

    assert repr(named.exception(0)) == "ValueError('no key')"
    assert repr(other.exception(0)) == "RuntimeError('refused')"


def test_a_batch_is_completed_once() -> None:
    batch = a_batch()
    future = append(batch, b"v")

    assert batch.complete(100)
    assert not batch.complete(-1, error=RuntimeError("too late"))
    assert future.result(0).offset == 100


def test_callbacks_run_in_order_though_one_of_them_raises(caplog: pytest.LogCaptureFixture) -> None:
    batch, log = a_batch(), list[Delivery]()

    def fail(error: BaseException | None, metadata: RecordMetadata) -> None:
        raise RuntimeError("of the application")

    append(batch, b"a", log=log)
    assert batch.append(None, b"b", None, TIME_MS, fail) is not None
    append(batch, b"c", log=log)
    batch.complete(100)

    assert [(error, metadata.offset) for error, metadata in log] == [(None, 100), (None, 102)]
    assert "on_delivery raised" in caplog.text


def test_a_result_that_does_not_come_in_time_is_a_time_out() -> None:
    future = append(a_batch(), b"v")

    with pytest.raises(TimeoutError, match="a record for orders-2 is not delivered"):
        future.result(0.01)


def test_futures_and_callbacks_of_a_split_batch_follow_their_records() -> None:
    batch, log = a_batch(), list[Delivery]()
    futures = [append(batch, b"v", log=log) for _ in range(3)]
    called: list[int] = []
    futures[2].add_done_callback(lambda future: called.append(future.result(0).offset))
    parts = [a_batch(), a_batch()]
    append(parts[0], b"v")
    append(parts[1], b"v")
    append(parts[1], b"v")

    batch.split_into(parts)
    parts[1].complete(200)
    assert [future.done() for future in futures] == [False, True, True]
    parts[0].complete(100)

    assert [future.result(0).offset for future in futures] == [100, 200, 201]
    assert [metadata.offset for _, metadata in log] == [200, 201, 100]
    assert called == [201]
    assert batch.current_batches() == parts
