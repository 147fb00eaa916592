"""The consumer when things break: it goes on where it was, and nothing is lost or given twice."""

from __future__ import annotations

import time
from typing import Any

import pytest

from client.proxy import Proxy
from odradek import Consumer, Producer, TopicPartition
from odradek.testing import Cluster

QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "reconnect_backoff_max_ms": 50}


def fill(bootstrap: str, topic: str, start: int, end: int) -> None:
    with Producer(bootstrap_servers=bootstrap, batch_size=500, **QUICK) as producer:
        for number in range(start, end):
            producer.send(topic, b"%d" % number, partition=0)


def read(consumer: Consumer[Any, Any], count: int) -> list[int]:
    numbers: list[int] = []
    deadline = time.monotonic() + 60
    while len(numbers) < count:
        assert time.monotonic() < deadline, f"{len(numbers)} of {count}"
        numbers += [int(record.value) for record in consumer.poll(0.1)]
    return numbers


def test_connections_cut_again_and_again_cost_nothing(proxy: Proxy, topic: str) -> None:
    fill(proxy.address, topic, 0, 1000)
    with Consumer(
        bootstrap_servers=proxy.address,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=2000,
        max_poll_records=20,
        **QUICK,
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        seen: list[int] = []
        while len(seen) < 1000:
            seen += read(consumer, 1)
            if len(seen) % 200 == 0:
                proxy.cut()
            proxy.cut_instead_of_answer(3)
    assert seen == list(range(1000))


def test_a_broker_that_does_not_answer_is_asked_again(proxy: Proxy, topic: str) -> None:
    fill(proxy.address, topic, 0, 10)
    with Consumer(
        bootstrap_servers=proxy.address,
        auto_offset_reset="earliest",
        request_timeout_ms=200,
        fetch_max_wait_ms=50,
        **QUICK,
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert read(consumer, 10) == list(range(10))
        proxy.pause()
        assert consumer.poll(0.4) == []
        proxy.resume()
        fill(proxy.address, topic, 10, 20)
        assert read(consumer, 10) == list(range(10, 20))


def test_a_group_lives_through_cuts_without_loss(proxy: Proxy, topic: str) -> None:
    fill(proxy.address, topic, 0, 300)
    with Consumer(
        bootstrap_servers=proxy.address,
        group_id=topic,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=20,
        session_timeout_ms=6000,
        max_poll_records=20,
        **QUICK,
    ) as consumer:
        consumer.subscribe([topic])
        seen: list[int] = []
        for round_number in range(6):
            seen += read(consumer, 20)
            consumer.commit()
            if round_number % 2:
                proxy.cut()
        while len(set(seen)) < 300:
            seen += read(consumer, 1)
    assert set(seen) == set(range(300))


def test_close_ends_although_no_broker_responds(proxy: Proxy, topic: str) -> None:
    fill(proxy.address, topic, 0, 10)
    consumer = Consumer(
        bootstrap_servers=proxy.address, group_id=topic, auto_offset_reset="earliest", **QUICK
    )
    consumer.subscribe([topic])
    read(consumer, 10)
    proxy.pause()

    consumer.close(0.2)

    assert not consumer._background._thread.is_alive()


@pytest.mark.slow
def test_a_broker_killed_and_back_is_read_on(topic: str) -> None:
    with Cluster(process=True, num_partitions=1) as cluster:
        fill(cluster.bootstrap, topic, 0, 100)
        with Consumer(
            bootstrap_servers=cluster.bootstrap, group_id="g", auto_offset_reset="earliest", **QUICK
        ) as consumer:
            consumer.subscribe([topic])
            assert read(consumer, 100) == list(range(100))
            consumer.commit()
            cluster.kill()
            cluster.restart()
            fill(cluster.bootstrap, topic, 100, 200)
            assert set(read(consumer, 100)) >= set(range(100, 200))
