"""A whole broker on the embedded store, with a client that we did not write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.running import RunningBroker
from odradek.log.errors import InconsistentMetaProperties


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path) as running:
        yield running


def produce(broker: RunningBroker, topic: str, count: int, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": broker.address, **settings})
    for number in range(count):
        producer.produce(topic, b"value %d" % number, key=b"key %d" % number)
    assert producer.flush(20) == 0


def consume(broker: RunningBroker, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    while len(values) < count:
        messages = consumer.consume(count, timeout=10)
        assert messages, f"only {len(values)} of {count} records came"
        values += [message.value() for message in messages]
    consumer.close()
    return values


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_makes_a_topic_by_producing_and_reads_it_back(broker, codec):
    produce(broker, "orders", 500, **{"compression.type": codec, "enable.idempotence": True})
    assert consume(broker, "orders", 500) == [b"value %d" % number for number in range(500)]


def test_all_topics_are_listed(broker):
    produce(broker, "orders", 1)
    metadata = Producer({"bootstrap.servers": broker.address}).list_topics(timeout=10)
    assert set(metadata.topics) == {"orders"}
    assert [f"{one.host}:{one.port}" for one in metadata.brokers.values()] == [broker.address]


def test_everything_is_there_after_a_restart(tmp_path):
    with RunningBroker(tmp_path) as first:
        produce(first, "orders", 100)
    with RunningBroker(tmp_path) as second:
        produce(second, "orders", 100)
        assert consume(second, "orders", 200) == [b"value %d" % number for number in range(100)] * 2


def test_the_directories_of_another_broker_are_refused_where_no_id_is_configured(tmp_path):
    with RunningBroker(tmp_path, "broker.id=7"):
        pass
    with pytest.raises(InconsistentMetaProperties, match=r"belongs to broker 7, .* set broker.id=7"):
        RunningBroker(tmp_path).start()
