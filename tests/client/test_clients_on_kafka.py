"""Our clients against Apache Kafka, and beside other clients in one group, on either broker."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from kafka_peer import restart_kafka, running_kafka
from odradek import Admin, Consumer, Producer, TopicPartition, broker_errors
from odradek.testing import Cluster

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it uses what Python has deprecated
    from kafka import KafkaConsumer

PARTITIONS = 6


@pytest.fixture(scope="module")
def kafka_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kafka")


@pytest.fixture(scope="module")
def kafka(kafka_directory: Path) -> Iterator[str]:
    with running_kafka(kafka_directory) as address:
        yield address


@pytest.fixture(scope="module")
def ours() -> Iterator[str]:
    with Cluster() as cluster:
        yield cluster.bootstrap


@pytest.fixture(params=["ours", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def bootstrap(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
def made_topic(bootstrap: str, topic: str) -> str:
    name = topic.replace("-ours", "").replace("-kafka", "")
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, num_partitions=PARTITIONS)
    return name


def read(consumer: Consumer[Any, Any], count: int) -> list[Any]:
    records: list[Any] = []
    deadline = time.monotonic() + 60
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count}"
        records += consumer.poll(1)
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_goes_both_ways(bootstrap: str, made_topic: str, codec: str) -> None:
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for number in range(1000):
            producer.send(made_topic, b"%d" % number, b"k", 0, [("h", b"1")], 1000 + number)
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(made_topic, 0)])
        records = read(consumer, 1000)
        (found,) = consumer.offsets_for_times({TopicPartition(made_topic, 0): 1500}).values()

    assert [int(record.value) for record in records] == list(range(1000))
    assert records[7].headers == (("h", b"1"),)
    assert found is not None
    assert found.offset == 500


def test_tables_go_both_ways(bootstrap: str, made_topic: str) -> None:
    table = pa.table({"key": [b"%d" % n for n in range(10_000)], "value": [b"v" * 50] * 10_000})
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert sum(rows.record_count for rows in producer.send_table(made_topic, table).result(60)) == 10_000
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(made_topic, number) for number in range(PARTITIONS)])
        keys: list[bytes] = []
        while len(keys) < 10_000:
            keys += consumer.poll_table(10).column("key").to_pylist()
    assert sorted(keys) == sorted(table.column("key").to_pylist())


def test_batches_that_are_too_large_are_halved(bootstrap: str, topic: str) -> None:
    name = topic.replace("-ours", "").replace("-kafka", "")
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(name, num_partitions=1, configs={"max.message.bytes": "2000"})
    with Producer(bootstrap_servers=bootstrap, linger_ms=50) as producer:
        sizes = [100] * 300 + [3000] + [100] * 300
        futures = [producer.send(name, b"x" * size) for size in sizes]
        assert producer.flush(60)
        assert producer.statistics().batches_split > 0
    failed = [number for number, future in enumerate(futures) if future.exception(0) is not None]
    assert failed == [300]
    assert isinstance(futures[300].exception(0), broker_errors.MessageTooLarge)
    assert [future.result(0).offset for future in futures[:300] + futures[301:]] == list(range(600))


@pytest.mark.slow
def test_members_of_the_new_protocol_share(bootstrap: str, made_topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(600):
            producer.send(made_topic, b"%d" % number, partition=number % PARTITIONS)
    settings: dict[str, Any] = {
        "bootstrap_servers": bootstrap,
        "group_id": f"new-group-of-{made_topic}",
        "group_protocol": "consumer",
        "auto_offset_reset": "earliest",
        "max_poll_records": 10,
    }
    seen: list[int] = []
    with Consumer(**settings) as first, Consumer(**settings) as second:
        first.subscribe([made_topic])
        while not first.assignment():
            seen += [int(record.value) for record in first.poll(0.1)]
        second.subscribe([made_topic])
        deadline = time.monotonic() + 90
        while len(set(seen)) < 600 or len(second.assignment()) != PARTITIONS // 2:
            assert time.monotonic() < deadline, (len(seen), first.assignment(), second.assignment())
            seen += [int(record.value) for member in (first, second) for record in member.poll(0.05)]
        assert not first.assignment() & second.assignment()

    assert sorted(seen) == list(range(600)), "nothing skipped, nothing twice"


class Member:
    """A consumer of any kind in one group: polls once, returns the numbers it got."""

    def __init__(self, poll: Callable[[], list[int]], close: Callable[[], object]) -> None:
        self.poll, self.close = poll, close
        self.got: list[int] = []


def our_member(bootstrap: str, topic: str, group: str) -> Member:
    consumer = Consumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        partition_assignment_strategy=["range"],
        heartbeat_interval_ms=100,
    )
    consumer.subscribe([topic])
    return Member(lambda: [int(record.value) for record in consumer.poll(0.1)], consumer.close)


def confluent_member(bootstrap: str, topic: str, group: str) -> Member:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 100,
        }
    )
    consumer.subscribe([topic])

    def poll() -> list[int]:
        return [int(message.value()) for message in consumer.consume(100, 0.1) if message.error() is None]

    return Member(poll, consumer.close)


def kafka_python_member(bootstrap: str, topic: str, group: str) -> Member:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=100,
    )

    def poll() -> list[int]:
        return [int(record.value) for batch in consumer.poll(100).values() for record in batch]

    return Member(poll, consumer.close)


@pytest.mark.slow
def test_one_group_of_three_kinds_of_clients_misses_nothing(bootstrap: str, made_topic: str) -> None:
    makers = [our_member, confluent_member, kafka_python_member]
    group = f"group-of-{made_topic}"
    members: list[Member] = []
    total = 0

    def produce(count: int) -> None:
        nonlocal total
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(total, total + count):
                producer.send(made_topic, b"%d" % number, partition=number % PARTITIONS)
        total += count

    def read_all() -> None:
        deadline = time.monotonic() + 90
        while len({number for member in everybody for number in member.got}) < total:
            assert time.monotonic() < deadline
            for member in members:
                member.got += member.poll()

    everybody: list[Member] = []
    try:
        for make in makers:
            members.append(make(bootstrap, made_topic, group))
            everybody.append(members[-1])
            produce(300)
            read_all()
        # Now each has a share: two partitions of six.
        deadline = time.monotonic() + 90
        while True:
            assert time.monotonic() < deadline
            before = [len(member.got) for member in members]
            produce(60)
            read_all()
            if all(len(member.got) > was for member, was in zip(members, before, strict=True)):
                break
        members.pop(0).close()
        produce(300)
        read_all()
    finally:
        for member in members:
            member.close()

    numbers = sorted(number for member in everybody for number in member.got)
    assert numbers == list(range(total)), "nobody was killed, so that nothing is read twice either"


@pytest.mark.java
@pytest.mark.slow
def test_a_leader_of_a_new_epoch_is_asked_and_read_on(kafka: str, kafka_directory: Path, topic: str) -> None:
    place = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=kafka) as admin:
        admin.create_topic(topic, num_partitions=1)
    with (
        Producer(bootstrap_servers=kafka) as producer,
        Consumer(bootstrap_servers=kafka, group_id=topic, auto_offset_reset="none") as consumer,
    ):
        consumer.assign([place])
        consumer.seek(place, 0)
        for number in range(10):
            producer.send(topic, b"%d" % number)
        records = read(consumer, 10)
        restart_kafka(kafka_directory, kafka)
        for number in range(10, 20):
            producer.send(topic, b"%d" % number)
        records += read(consumer, 10)
        consumer.commit()
        (committed,) = consumer.committed([place]).values()

    assert [int(record.value) for record in records] == list(range(20))
    epochs = {record.leader_epoch for record in records}
    assert len(epochs) == 2, "the restart began another epoch"
    assert committed is not None
    assert (committed.offset, committed.leader_epoch) == (20, max(epochs))
