"""The producer when things break: each fault ends as documented, no future hangs, flush and close end."""

from __future__ import annotations

import time

import pytest

from client.proxy import Proxy
from client.reading import read_back
from odradek import Producer
from odradek.client.errors import ClientClosed
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.testing import Cluster

QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 50}


def values(cluster: Cluster, topic: str) -> list[bytes | None]:
    return [record.value for record in read_back(cluster, topic)[0]]


def test_a_connection_cut_again_and_again_costs_nothing(
    proxied: tuple[Proxy, Cluster], proxy: Proxy, topic: str
) -> None:
    cluster, sent = proxied[1], []
    with Producer(bootstrap_servers=proxy.address, linger_ms=0, batch_size=1000, **QUICK) as producer:
        for turn in range(15):
            proxy.cut_instead_of_answer(turn % 4)
            for number in range(20):
                value = b"%d-%d" % (turn, number)
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


def test_close_ends_in_its_time_and_fails_what_is_left(proxy: Proxy, topic: str) -> None:
    producer = Producer(bootstrap_servers=proxy.address, linger_ms=0, **QUICK)
    producer.send(topic, b"first").result(20)
    proxy.go_down()
    left = producer.send(topic, b"left")
    assert not producer.flush(0.1)

    producer.close(0.1)

    with pytest.raises(ClientClosed):
        left.result(0)


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


def test_a_stale_view_is_renewed_when_a_topic_is_made_anew(cluster: Cluster, topic: str) -> None:
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
