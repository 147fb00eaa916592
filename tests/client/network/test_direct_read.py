"""Direct reading: a waiting thread reads its responses itself, and nothing is lost on any fault."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.eventually import eventually
from client.proxy import Proxy
from odradek import Consumer, Producer, TopicPartition
from odradek.client.network.direct_read import DirectRead
from odradek.testing import Cluster

SECONDS = 20
MOST_SENDS = 500
INTERRUPTED = Path(__file__).with_name("interrupted.py")
names = (f"direct-{number}" for number in itertools.count())

Sender = Producer[bytes, bytes]
Reader = Consumer[bytes, bytes]


@pytest.fixture(scope="module")
def producer(cluster: Cluster) -> Iterator[Sender]:
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        yield producer


def consumer_of(bootstrap: str, topic: str, *, odradek_direct_read: bool = True) -> Reader:
    consumer: Reader = Consumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", odradek_direct_read=odradek_direct_read
    )
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def direct_read_of(client: Sender | Reader) -> DirectRead | None:
    is_consumer = isinstance(client, Consumer)
    brokers = client._engine.brokers if is_consumer else client._engine._brokers
    connection = brokers.open_connection(0, "fetch") if is_consumer else brokers.open_connection(0)
    return None if connection is None else connection.direct_read


def is_read_directly(client: Sender | Reader) -> bool:
    direct_read = direct_read_of(client)
    return direct_read is not None and direct_read.is_active


def answers(client: Sender | Reader) -> int:
    """How many responses waiting threads have read."""
    direct_read = direct_read_of(client)
    return 0 if direct_read is None else direct_read.responses


def send(producer: Sender, topic: str, value: bytes) -> int:
    return producer.send(topic, value, partition=0).result(SECONDS).offset


def next_value(consumer: Reader) -> bytes | None:
    (record,) = consumer.poll(SECONDS)
    return record.value


def start_direct_consumer(consumer: Reader, producer: Sender, topic: str) -> None:
    """Read records one by one until one was read directly."""
    before = answers(consumer)
    for number in range(MOST_SENDS):
        send(producer, topic, b"%d" % number)
        assert next_value(consumer) == b"%d" % number
        if answers(consumer) > before and is_read_directly(consumer):
            return
    raise AssertionError("direct reading never started")


def start_direct_producer(producer: Sender, topic: str) -> None:
    for _ in range(MOST_SENDS):
        send(producer, topic, b"x")
        if answers(producer) and is_read_directly(producer):
            return
    raise AssertionError("direct reading never started")


# Consumers.


def test_records_that_are_waited_for_are_read_by_the_thread_that_polls(
    cluster: Cluster, producer: Sender
) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        before = answers(consumer)
        for number in range(30):
            send(producer, topic, b"then %d" % number)
            assert next_value(consumer) == b"then %d" % number
        assert answers(consumer) > before


def test_direct_reading_stops_when_idle_and_later_records_are_read(
    cluster: Cluster, producer: Sender
) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        eventually(lambda: not is_read_directly(consumer))
        send(producer, topic, b"after a pause")
        assert next_value(consumer) == b"after a pause"


def test_a_change_during_direct_reading_is_handled_by_the_loop_without_a_poll(
    cluster: Cluster, producer: Sender
) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        for number in range(5):
            start_direct_consumer(consumer, producer, topic)
            # The fetch in flight is out of date: the fetcher must send the deferred request.
            consumer._background.loop.call_soon_threadsafe(consumer._engine.pump)
            eventually(lambda: not is_read_directly(consumer))
            send(producer, topic, b"after %d" % number)
            assert next_value(consumer) == b"after %d" % number


def test_polls_that_do_not_wait_return_records_during_direct_reading(
    cluster: Cluster, producer: Sender
) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        send(producer, topic, b"found")
        found: list[bytes | None] = []
        eventually(lambda: bool(found.extend(record.value for record in consumer.poll(0)) or found))
        assert found == [b"found"]


def test_many_records_at_once_stop_direct_reading_and_come_in_order(
    cluster: Cluster, producer: Sender
) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        values = [b"%05d" % number + bytes(1000) for number in range(3000)]
        for value in values:
            producer.send(topic, value, partition=0)
        read: list[bytes | None] = []
        while len(read) < len(values):
            read += [record.value for record in consumer.poll(SECONDS)]
        assert read == values


def test_seek_and_pause_work_during_direct_reading(cluster: Cluster, producer: Sender) -> None:
    topic = next(names)
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        consumer.seek(partition, 1)
        assert consumer.poll(SECONDS)[0].offset == 1
        consumer.seek_to_end([partition])
        end = consumer.position(partition)
        consumer.pause([partition])
        send(producer, topic, b"held back")
        assert consumer.poll(0.2) == []
        consumer.resume([partition])
        (record,) = consumer.poll(SECONDS)
        assert (record.offset, record.value) == (end, b"held back")


def test_errors_reach_a_poll_that_reads_directly(cluster: Cluster, producer: Sender) -> None:
    topic = next(names)
    with consumer_of(cluster.bootstrap, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        assert direct_read_of(consumer) is not None
        fetch_buffer, loop = consumer._fetch_buffer, consumer._background.loop

        def fail_when_awaited() -> None:
            if fetch_buffer.is_awaited:
                fetch_buffer.fail(ZeroDivisionError("in the background"))
            else:
                loop.call_later(0.001, fail_when_awaited)

        loop.call_soon_threadsafe(fail_when_awaited)
        with pytest.raises(ZeroDivisionError, match="in the background"):
            consumer.poll(SECONDS)


@pytest.mark.parametrize("chunks", [0, 1])
def test_a_connection_that_is_cut_during_direct_reading_loses_nothing(
    proxied: tuple[Proxy, Cluster], chunks: int
) -> None:
    proxy, _ = proxied
    topic = next(names)
    direct = Producer(bootstrap_servers=proxy.address, linger_ms=0)
    with direct as producer, consumer_of(proxy.address, topic) as consumer:
        start_direct_consumer(consumer, producer, topic)
        values = [b"cut %d" % number for number in range(20)]
        read: list[bytes | None] = []
        for number, value in enumerate(values):
            if number == 5:
                proxy.cut_instead_of_answer(chunks)
            if number == 12:
                proxy.cut()
            send(producer, topic, value)
            read += [record.value for record in consumer.poll(SECONDS)]
        while len(read) < len(values):
            read += [record.value for record in consumer.poll(SECONDS)]
        assert read == values


@pytest.mark.parametrize("kind", ["consumer", "producer"])
def test_ctrl_c_during_direct_reading_is_raised_and_nothing_is_lost(cluster: Cluster, kind: str) -> None:
    program = [sys.executable, INTERRUPTED, kind, cluster.bootstrap, next(names)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 0, ended.stderr


# Producers.


def test_a_thread_that_sends_and_waits_reads_the_responses(cluster: Cluster, producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    before, first = answers(producer), send(producer, topic, b"first")
    assert [send(producer, topic, b"next") for _ in range(30)] == list(range(first + 1, first + 31))
    assert answers(producer) > before


def test_on_delivery_is_called_on_the_producers_thread(producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    called_on: list[str] = []
    called = threading.Event()

    def on_delivery(error: BaseException | None, metadata: object) -> None:
        called_on.append(threading.current_thread().name)
        called.set()

    producer.send(topic, b"value", partition=0, on_delivery=on_delivery)
    assert called.wait(SECONDS)
    assert called_on == ["odradek producer"]


def test_a_done_callback_is_called_though_nobody_waits(producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    called = threading.Event()
    producer.send(topic, b"called", partition=0).add_done_callback(lambda _: called.set())
    assert called.wait(SECONDS)


def test_done_reads_the_response(producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    for _ in range(20):
        future = producer.send(topic, b"asked for", partition=0)
        eventually(future.done)
        assert future.result(0).topic == topic


def test_records_that_nobody_waits_for_are_delivered_in_order(cluster: Cluster, producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    futures = [producer.send(topic, b"%d" % number, partition=0) for number in range(200)]
    assert producer.flush(SECONDS)
    offsets = [future.result(0).offset for future in futures]
    assert offsets == list(range(offsets[0], offsets[0] + 200))


def test_threads_that_wait_at_once_all_get_their_offset(producer: Sender) -> None:
    topic = next(names)
    start_direct_producer(producer, topic)
    offsets: list[int] = []

    def send_and_wait() -> None:
        for _ in range(100):
            offset = send(producer, topic, b"of a thread")
            offsets.append(offset)

    threads = [threading.Thread(target=send_and_wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(offsets)) == 400


def test_a_direct_wait_times_out_and_the_record_is_delivered_later(
    proxied: tuple[Proxy, Cluster],
) -> None:
    proxy, _ = proxied
    topic = next(names)
    with Producer(bootstrap_servers=proxy.address, linger_ms=0) as producer:
        start_direct_producer(producer, topic)
        proxy.pause()
        future = producer.send(topic, b"late", partition=0)
        try:
            with pytest.raises(TimeoutError, match=r"is not delivered after 0\.05 s"):
                future.result(0.05)
        finally:
            proxy.resume()
        assert future.result(SECONDS).offset > 0


def test_a_record_whose_response_is_cut_off_during_direct_reading_is_sent_again(
    proxied: tuple[Proxy, Cluster],
) -> None:
    proxy, _ = proxied
    topic = next(names)
    with Producer(bootstrap_servers=proxy.address, linger_ms=0) as producer:
        start_direct_producer(producer, topic)
        before = send(producer, topic, b"before")
        proxy.cut_instead_of_answer(0)
        assert send(producer, topic, b"again") == before + 1
        assert send(producer, topic, b"after") == before + 2


# Turned off.


def test_a_connection_is_never_read_directly_if_that_is_turned_off(cluster: Cluster) -> None:
    topic = next(names)
    with (
        Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0, odradek_direct_read=False) as producer,
        consumer_of(cluster.bootstrap, topic, odradek_direct_read=False) as consumer,
    ):
        for number in range(50):
            assert send(producer, topic, b"%d" % number) == number
            assert next_value(consumer) == b"%d" % number
            assert direct_read_of(producer) is None
            assert direct_read_of(consumer) is None
