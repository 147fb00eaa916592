"""Clients of three libraries read as members of a group, each in its own dialect."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from broker.running import RunningBroker

with warnings.catch_warnings():
    # It reads its schemas, as it is imported, by a function that Python 3.11 calls outdated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka

RECORDS = [b"%d" % number for number in range(60)]
EXPECTED = sorted(RECORDS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = ("group.initial.rebalance.delay.ms=0", "offsets.topic.num.partitions=4")
    with RunningBroker(tmp_path_factory.mktemp("data"), *settings) as running:
        admin = AdminClient({"bootstrap.servers": running.address})
        for made in admin.create_topics([NewTopic("orders", 3, 1)]).values():
            made.result()
        producer = confluent_kafka.Producer({"bootstrap.servers": running.address})
        for number, record in enumerate(RECORDS):
            producer.produce("orders", record, partition=number % 3)
        producer.flush()
        yield running


def test_librdkafka_reads_and_commits_in_a_group(broker):
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.address, "group.id": "librdkafka", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    read = []
    while len(read) < len(RECORDS):
        read += [message.value() for message in consumer.consume(len(RECORDS), 20)]
    consumer.commit(asynchronous=False)
    partitions = [confluent_kafka.TopicPartition("orders", index) for index in range(3)]
    committed = [one.offset for one in consumer.committed(partitions)]
    consumer.close()

    assert sorted(read) == EXPECTED
    assert committed == [20, 20, 20]


def test_aiokafka_reads_and_commits_in_a_group(broker):
    async def read_all() -> tuple[list[bytes], int | None]:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.address, group_id="aiokafka", auto_offset_reset="earliest"
        )
        await consumer.start()
        try:
            read = [await asyncio.wait_for(consumer.getone(), 20) for _ in RECORDS]
            await consumer.commit()
            return (
                [message.value for message in read],
                await consumer.committed(aiokafka.TopicPartition("orders", 0)),
            )
        finally:
            await consumer.stop()

    read, committed = asyncio.run(read_all())
    assert sorted(read) == EXPECTED
    assert committed == 20


def test_kafka_python_reads_and_commits_in_a_group(broker):
    consumer = kafka.KafkaConsumer(
        "orders", bootstrap_servers=broker.address, group_id="kafka-python", auto_offset_reset="earliest"
    )
    read = [next(consumer).value for _ in RECORDS]
    consumer.commit()
    committed = consumer.committed(kafka.TopicPartition("orders", 2))
    consumer.close()

    assert sorted(read) == EXPECTED
    assert committed == 20
