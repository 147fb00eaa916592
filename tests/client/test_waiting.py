"""Threads that wait read their answers by themselves, and whatever ends their waiting ends it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from client.eventually import eventually
from client.proxy import Proxy
from client.reading import read_back
from odradek import Consumer, Producer, TopicPartition
from odradek.client.background import BackgroundLoop
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.client.reading import SharedReading
from odradek.testing import Cluster

Bytes = Producer[bytes, bytes]


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[Bytes]:
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        yield producer


@pytest.fixture
def consumer(cluster: Cluster, producer: Bytes, topic: str) -> Iterator[Consumer[bytes, bytes]]:
    """One that has read the only record of the topic."""
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        producer.send(topic, b"first", partition=0).result(20)
        consumer.assign([TopicPartition(topic, 0)])
        assert [record.value for record in consumer.poll(20)] == [b"first"]
        yield consumer


def reading_of(client: Bytes | Consumer[bytes, bytes]) -> SharedReading:
    engine = client._engine
    brokers = engine._brokers if isinstance(client, Producer) else engine.brokers
    assert brokers.reading is not None
    return brokers.reading


def wait_until_lent(client: Bytes | Consumer[bytes, bytes], wait: Callable[[], object]) -> None:
    """Wait again and again, until that is done by reading."""
    reading = reading_of(client)

    def has_read() -> bool:
        before = reading._uses
        wait()
        return reading._uses > before

    eventually(has_read)


@contextmanager
def busy(background: BackgroundLoop) -> Iterator[None]:
    """A loop that does nothing for us meanwhile."""
    is_busy, may_go_on = threading.Event(), threading.Event()
    background.call_soon(lambda: (is_busy.set(), may_go_on.wait(60)))
    assert is_busy.wait(20)
    try:
        yield
    finally:
        may_go_on.set()


@contextmanager
def interrupted_while(client: Bytes | Consumer[bytes, bytes]) -> Iterator[None]:
    """Ctrl-C comes when this thread reads, and is told as ever."""
    reading = reading_of(client)

    def interrupt() -> None:
        eventually(lambda: reading._reader is not None)
        os.kill(os.getpid(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    other.join()


def test_a_thread_that_waits_for_its_record_needs_no_other(
    producer: Bytes, cluster: Cluster, topic: str
) -> None:
    offsets = []

    def needs_no_loop() -> bool:
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        with busy(producer._background):
            # Taken back in this moment, or a question about metadata before it: then once more.
            future = producer.send(topic, b"lone", partition=0)
            try:
                offsets.append(future.result(0.5).offset)
            except TimeoutError:
                return False
        return True

    eventually(needs_no_loop)
    assert read_back(cluster, topic)[0][offsets[0]].value == b"lone"


def test_a_thread_that_polls_needs_no_other(
    consumer: Consumer[bytes, bytes], producer: Bytes, topic: str
) -> None:
    wait_until_lent(consumer, lambda: consumer.poll(0.01))

    def needs_no_loop() -> bool:
        wait_until_lent(consumer, lambda: consumer.poll(0.01))
        with busy(consumer._background):
            producer.send(topic, b"next", partition=0)
            got = consumer.poll(0.5)
            # The fetch after it has been sent, too.
            producer.send(topic, b"and next", partition=0)
            got += consumer.poll(0.5) if got else []
        if len(got) == 2:
            return True
        while len(got) < 2:
            got += consumer.poll(20)
        return False

    eventually(needs_no_loop)


def test_threads_that_send_and_wait_at_once_all_get_their_answers(
    producer: Bytes, cluster: Cluster, topic: str
) -> None:
    def send_and_wait(sender: int) -> list[int]:
        return [
            producer.send(topic, b"%d:%d" % (sender, number), partition=0).result(30).offset
            for number in range(200)
        ]

    with ThreadPoolExecutor(4) as threads:
        offsets = list(threads.map(send_and_wait, range(4)))

    stored = [record.value for record in read_back(cluster, topic)[0]]
    for sender in range(4):
        assert [stored[offset] for offset in offsets[sender]] == [b"%d:%d" % (sender, n) for n in range(200)]
    assert len(stored) == 800


def test_two_threads_may_wait_for_one_record(producer: Bytes, topic: str) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(200):
            future = producer.send(topic, b"x", partition=0)
            first, second = threads.submit(future.result, 20), threads.submit(future.result, 20)
            assert first.result(20) == second.result(20)


def test_callbacks_stay_on_the_thread_of_the_producer(producer: Bytes, topic: str) -> None:
    threads = set()
    wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))

    for _ in range(50):
        future = producer.send(
            topic, b"x", partition=0, on_delivery=lambda *_: threads.add(threading.current_thread().name)
        )
        future.result(20)
    producer.flush(20)

    assert threads == {"odradek producer"}


def test_what_nobody_reads_by_waiting_is_read_by_the_loop(producer: Bytes, topic: str) -> None:
    called = []
    reading_of(producer)._unused_s = 600.0  # so that time alone does not help
    for _ in range(5):
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        producer.send(topic, b"y", partition=0)
        assert producer.flush(20)
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        producer.send(topic, b"y", partition=0, on_delivery=lambda error, _: called.append(error))
        eventually(lambda: bool(called))
        called.clear()


def test_a_wait_that_takes_too_long_leaves_all_as_it_was(proxy: Proxy, topic: str) -> None:
    with Producer(bootstrap_servers=proxy.address, linger_ms=0) as producer:
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        proxy.pause()
        late = producer.send(topic, b"late", partition=0)
        with pytest.raises(TimeoutError):
            late.result(0.01)
        proxy.resume()

        assert late.result(20).offset + 1 == producer.send(topic, b"next", partition=0).result(20).offset


def test_ctrl_c_ends_the_wait_for_a_record_and_nothing_else(proxy: Proxy, topic: str) -> None:
    with Producer(bootstrap_servers=proxy.address, linger_ms=0) as producer:
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        proxy.pause()
        late = producer.send(topic, b"late", partition=0)
        with interrupted_while(producer):
            while True:  # the first wait may only have asked for the turn
                try:
                    late.result(0.2)
                except TimeoutError:
                    continue
        proxy.resume()

        assert late.result(20).offset + 1 == producer.send(topic, b"next", partition=0).result(20).offset


class Interrupts:
    """Ctrl-C so many times, at any moment at which it `may_strike`, each after the one before was handled."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.handled = 0
        self.may_strike = False

    def strike(self, *_: object) -> None:
        if self.may_strike:
            raise KeyboardInterrupt
        self.handled += 1

    def send(self) -> None:
        dice = random.Random(1)
        for number in range(self.count):
            time.sleep(dice.random() / 1000)
            os.kill(os.getpid(), signal.SIGINT)
            eventually(lambda: self.handled > number)  # noqa: B023


def test_ctrl_c_again_and_again_leaves_no_record_behind(producer: Bytes, topic: str) -> None:
    producer.send(topic, b"first", partition=0).result(20)
    futures, interrupts = [], Interrupts(20)
    before = signal.signal(signal.SIGINT, interrupts.strike)
    other = threading.Thread(target=interrupts.send)
    other.start()
    while interrupts.handled < interrupts.count:
        try:
            interrupts.may_strike = True
            futures.append(producer.send(topic, b"x", partition=0))
            futures[-1].result(20)
            interrupts.may_strike = False
        except KeyboardInterrupt:
            interrupts.may_strike = False
            interrupts.handled += 1
    other.join()
    signal.signal(signal.SIGINT, before)

    assert producer.flush(20)
    assert all(future.done() for future in futures)
    assert producer.send(topic, b"last", partition=0).result(20).offset > len(futures)


def test_ctrl_c_ends_a_poll_and_nothing_else(
    consumer: Consumer[bytes, bytes], producer: Bytes, topic: str
) -> None:
    wait_until_lent(consumer, lambda: consumer.poll(0.01))
    with interrupted_while(consumer):
        while True:
            consumer.poll(0.2)

    for number in range(20):
        producer.send(topic, b"%d" % number, partition=0)
        assert [record.value for record in consumer.poll(20)] == [b"%d" % number]


def test_a_connection_cut_under_a_thread_that_reads_costs_nothing(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    with Producer(bootstrap_servers=proxy.address, linger_ms=0) as producer:
        for number in range(10):
            wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
            proxy.cut_instead_of_answer(0)
            producer.send(topic, b"cut %d" % number, partition=0).result(20)

    values = [record.value for record in read_back(proxied[1], topic)[0] if record.value != b"x"]
    assert values == [b"cut %d" % number for number in range(10)]


def test_a_record_that_nobody_acknowledges_fails_in_time_under_a_thread_that_reads(
    proxy: Proxy, topic: str
) -> None:
    limits = {"delivery_timeout_ms": 300, "request_timeout_ms": 200, "linger_ms": 0}
    with Producer(bootstrap_servers=proxy.address, **limits) as producer:
        wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
        proxy.pause()
        with pytest.raises(DeliveryTimedOut):
            producer.send(topic, b"late", partition=0).result(30)


def test_closing_ends_the_wait_of_a_thread_that_reads(proxy: Proxy, topic: str) -> None:
    producer = Producer(bootstrap_servers=proxy.address, linger_ms=0)
    wait_until_lent(producer, lambda: producer.send(topic, b"x", partition=0).result(20))
    proxy.pause()
    future = producer.send(topic, b"late", partition=0)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(future.exception, 30)
        time.sleep(0.01)
        producer.close(timeout=0.05)
        assert waits.result(20) is not None


def test_a_partition_taken_away_from_a_thread_that_polls_gives_nothing_more(
    consumer: Consumer[bytes, bytes], producer: Bytes, topic: str
) -> None:
    partitions = [TopicPartition(topic, number) for number in (0, 1)]
    for turn in range(20):
        wait_until_lent(consumer, lambda: consumer.poll(0.01))
        gone, kept = partitions[turn % 2], partitions[1 - turn % 2]
        consumer.assign([kept])
        consumer.seek_to_end([kept])
        for partition in (gone, kept):
            producer.send(topic, b"%d" % turn, partition=partition.partition).result(20)
        (record,) = consumer.poll(20)
        assert (record.partition, record.value) == (kept.partition, b"%d" % turn)
