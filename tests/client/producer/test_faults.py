"""The producer when things break: each fault ends as documented, no future hangs, flush and close end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from client.eventually import eventually
from client.proxy import Proxy
from client.reading import read_back
from odradek import Producer
from odradek.client.errors import ClientClosed
from odradek.client.producer.errors import BufferExhausted, DeliveryTimedOut
from odradek.testing import Cluster
from odradek.testing.broker_process import BrokerProcess

QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 50}


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in read_back(cluster, topic)[0]]


def test_a_connection_cut_again_and_again_costs_nothing(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    cluster, sent = proxied[1], []
    with Producer(bootstrap_servers=proxy.address, linger_ms=0, batch_size=1000, **QUICK) as producer:
        for round_number in range(15):
            proxy.cut_instead_of_answer(round_number % 4)
            for number in range(20):
                value = b"%d-%d" % (round_number, number)
                producer.send(topic, value)
                sent.append(value)
            proxy.cut()
        assert producer.flush(60)

    assert values(cluster, topic) == sent, "in order, none twice, none lost"


def test_an_answer_that_gets_lost_is_asked_for_again_and_written_once(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    with Producer(bootstrap_servers=proxy.address, linger_ms=0, **QUICK) as producer:
        producer.send(topic, b"first").result(20)
        proxy.cut_instead_of_answer(0)
        assert producer.send(topic, b"second").result(20).offset == 1
        assert producer.statistics().retries >= 1

    assert values(proxied[1], topic) == [b"first", b"second"]


@pytest.mark.parametrize("count", [0, 3, 60, 5_000, 19_000])
def test_a_request_cut_in_the_middle_is_sent_again_and_written_once(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str, count: int
) -> None:
    large = b"x" * 20_000
    with Producer(bootstrap_servers=proxy.address, linger_ms=0, **QUICK) as producer:
        producer.send(topic, b"first").result(20)
        proxy.cut_in_request(count)
        futures = [producer.send(topic, value) for value in (large, b"behind it")]
        assert [future.result(20).offset for future in futures] == [1, 2]
        assert producer.statistics().retries >= 1

    assert values(proxied[1], topic) == [b"first", large, b"behind it"]


def test_a_broker_that_does_not_answer_is_asked_again_on_a_new_connection(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    with Producer(bootstrap_servers=proxy.address, linger_ms=0, request_timeout_ms=300, **QUICK) as producer:
        producer.send(topic, b"first").result(20)
        proxy.pause()
        futures = [producer.send(topic, b"%d" % number) for number in range(5)]
        with pytest.raises(TimeoutError):
            futures[0].result(0.5)
        proxy.resume()
        assert [future.result(20).offset for future in futures] == [1, 2, 3, 4, 5]

    assert values(proxied[1], topic) == [b"first", b"0", b"1", b"2", b"3", b"4"]


def test_a_broker_that_stays_away_ends_in_a_delivery_timeout_and_the_next_records_arrive(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    with Producer(
        bootstrap_servers=proxy.address, linger_ms=0, request_timeout_ms=200, delivery_timeout_ms=400, **QUICK
    ) as producer:
        producer.send(topic, b"first").result(20)
        proxy.go_down()
        lost = [producer.send(topic, b"lost %d" % number) for number in range(3)]
        for future in lost:
            with pytest.raises(DeliveryTimedOut, match="not acknowledged within 400 ms"):
                future.result(20)
        assert producer.flush(20), "flush ends although records failed"
        proxy.come_up()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            future = producer.send(topic, b"after")
            if future.exception(20) is None:
                break
        assert future.exception(0) is None
        assert producer.statistics().records_failed >= 3

    arrived = values(proxied[1], topic)
    assert arrived[0] == b"first"
    assert set(arrived[1:]) == {b"after"}, "those that could not be sent were never written"


def test_a_buffer_that_stays_full_is_reported_and_what_was_taken_arrives(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    with Producer(
        bootstrap_servers=proxy.address, buffer_memory=20_000, batch_size=5_000, max_block_ms=200, **QUICK
    ) as producer:
        producer.send(topic, b"0").result(20)
        proxy.pause()
        taken = 1
        with pytest.raises(BufferExhausted, match="bytes free within max_block_ms=200"):  # noqa: PT012
            while taken < 1000:
                producer.send(topic, b"%d" % taken + b"." * 1000)
                taken += 1
        proxy.resume()
        assert producer.flush(20)
        assert producer.send(topic, b"%d" % taken).result(20).offset == taken

    assert [int((value or b"").rstrip(b".")) for value in values(proxied[1], topic)] == list(range(taken + 1))


def test_close_without_a_limit_ends_when_the_records_have_failed(proxy: Proxy, topic: str) -> None:
    producer = Producer(
        bootstrap_servers=proxy.address, linger_ms=0, request_timeout_ms=100, delivery_timeout_ms=200, **QUICK
    )
    producer.send(topic, b"first").result(20)
    proxy.go_down()
    left = producer.send(topic, b"left")

    producer.close()

    with pytest.raises(DeliveryTimedOut, match=r"not acknowledged within 200 ms.*connection"):
        left.result(0)


def test_close_ends_in_its_time_and_fails_what_is_left(proxy: Proxy, topic: str) -> None:
    producer = Producer(bootstrap_servers=proxy.address, linger_ms=0, **QUICK)
    producer.send(topic, b"first").result(20)
    proxy.go_down()
    left = producer.send(topic, b"left")
    assert not producer.flush(0.1)

    producer.close(0.1)

    with pytest.raises(ClientClosed):
        left.result(0)


@pytest.fixture
def stoppable() -> Iterator[tuple[Cluster, int]]:
    """A broker in a process of its own, and that process's id; it runs again whatever a test did to it."""
    with Cluster(process=True, num_partitions=1) as cluster:
        life = cluster._run(0)
        assert isinstance(life, BrokerProcess)
        process_id = life.process.pid
        try:
            yield cluster, process_id
        finally:
            os.kill(process_id, signal.SIGCONT)


@pytest.mark.slow
def test_a_broker_that_is_paused_and_continues_has_everything_once_and_in_order(
    stoppable: tuple[Cluster, int], topic: str
) -> None:
    cluster, process_id = stoppable
    with Producer(
        bootstrap_servers=cluster.bootstrap, linger_ms=0, request_timeout_ms=300, **QUICK
    ) as producer:
        producer.send(topic, b"0").result(20)
        os.kill(process_id, signal.SIGSTOP)
        futures = [producer.send(topic, b"%d" % number) for number in range(1, 50)]
        assert not producer.flush(0.1)
        eventually(lambda: producer.statistics().retries > 0)
        os.kill(process_id, signal.SIGCONT)
        assert [future.result(60).offset for future in futures] == list(range(1, 50))

    assert values(cluster, topic) == [b"%d" % number for number in range(50)]


@pytest.mark.slow
def test_a_broker_that_stays_paused_ends_in_delivery_timeouts(
    stoppable: tuple[Cluster, int], topic: str
) -> None:
    cluster, process_id = stoppable
    producer = Producer(
        bootstrap_servers=cluster.bootstrap,
        linger_ms=0,
        request_timeout_ms=200,
        delivery_timeout_ms=500,
        **QUICK,
    )
    producer.send(topic, b"first").result(20)
    os.kill(process_id, signal.SIGSTOP)
    futures = [producer.send(topic, b"%d" % number) for number in range(5)]

    assert producer.flush(20), "all have met their fate"
    for future in futures:
        with pytest.raises(DeliveryTimedOut, match=r"within 500 ms.*no response to|cannot connect"):
            future.result(0)
    producer.close()


@pytest.mark.slow
@pytest.mark.parametrize("acks", [1, "all"])
def test_a_killed_broker_that_comes_back_has_every_acknowledged_record_in_order(
    topic: str, acks: object
) -> None:
    with Cluster(process=True, num_partitions=1) as cluster:
        with Producer(bootstrap_servers=cluster.bootstrap, acks=acks, linger_ms=1, **QUICK) as producer:
            futures = [producer.send(topic, b"%d" % number) for number in range(500)]
            futures[100].result(60)
            cluster.kill()
            futures += [producer.send(topic, b"%d" % number) for number in range(500, 1000)]
            cluster.restart()
            assert producer.flush(60)
            assert [future.exception(0) for future in futures] == [None] * 1000
        numbers = [int(value or b"") for value in values(cluster, topic)]

    if acks == "all":
        assert numbers == list(range(1000))
    assert set(numbers) == set(range(1000))


def test_a_stale_view_is_renewed_when_a_topic_is_created_again(cluster: Cluster, topic: str) -> None:
    from odradek import Admin

    with (
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
        Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0, **QUICK) as producer,
    ):
        admin.create_topic(topic, num_partitions=1)
        assert producer.send(topic, b"old").result(20).offset == 0
        admin.delete_topics([topic])
        admin.create_topic(topic, num_partitions=1)
        assert producer.send(topic, b"new").result(20).offset == 0

    assert values(cluster, topic) == [b"new"]
