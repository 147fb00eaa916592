"""read_committed consumers of several libraries: each reads a whole topic, and waits for more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PurePartition

import odradek
from compat.java_tools import printed

PATIENCE_SECONDS = 60
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
EXTRA_SECONDS = 0.3
"""How long to wait for records that must not come."""

Values = list[list[str]]
Reader = Callable[[str, str, int, int], Values]


def librdkafka(
    bootstrap: str, topic: str, partitions: int, count: int, *, isolation: str = "read_committed"
) -> Values:
    """The values in each partition once there are so many, and those that still come."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation, "log_level": 0}
    )
    consumer.assign([ConfluentPartition(topic, index, 0) for index in range(partitions)])
    values: Values = [[] for _ in range(partitions)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        is_enough = sum(map(len, values)) >= count
        message = consumer.poll(EXTRA_SECONDS)
        if message is not None and message.error() is None:
            values[message.partition()].append(message.value().decode())
        elif is_enough:
            break
    consumer.close()
    return values


def aiokafka(bootstrap: str, topic: str, partitions: int, count: int) -> Values:
    """As above."""

    async def read() -> Values:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.assign([AioPartition(topic, index) for index in range(partitions)])
        values: Values = [[] for _ in range(partitions)]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            is_enough = sum(map(len, values)) >= count
            found = await consumer.getmany(timeout_ms=int(1000 * EXTRA_SECONDS))
            for partition, records in found.items():
                values[partition.partition] += [record.value.decode() for record in records]
            if is_enough and not found:
                break
        await consumer.stop()
        return values

    return asyncio.run(read())


def kafka_python(bootstrap: str, topic: str, partitions: int, count: int) -> Values:
    """As above."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    consumer.assign([PurePartition(topic, index) for index in range(partitions)])
    values: Values = [[] for _ in range(partitions)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        is_enough = sum(map(len, values)) >= count
        found = consumer.poll(timeout_ms=int(1000 * EXTRA_SECONDS))
        for partition, records in found.items():
            values[partition.partition] += [record.value.decode() for record in records]
        if is_enough and not found:
            break
    consumer.close()
    return values


def ours(bootstrap: str, topic: str, partitions: int, count: int) -> Values:
    """As above."""
    values: Values = [[] for _ in range(partitions)]
    with odradek.Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        chosen = [odradek.TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(chosen)
        consumer.seek_to_beginning(chosen)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            is_enough = sum(map(len, values)) >= count
            found = list(consumer.poll(EXTRA_SECONDS))
            for record in found:
                assert record.value is not None
                values[record.partition].append(bytes(record.value).decode())
            if is_enough and not found:
                break
    return values


def java(bootstrap: str, topic: str, partitions: int, count: int) -> Values:
    """As above, by ConsoleConsumer, which stops when nothing more comes."""
    options = ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
    options += ["--isolation-level", "read_committed", "--timeout-ms", "5000"]
    options += ["--formatter-property", "print.partition=true"]
    lines = printed(CONSOLE_CONSUMER, *options).splitlines()
    values: Values = [[] for _ in range(partitions)]
    for line in lines:
        partition, _, value = line.removeprefix("Partition:").partition("\t")
        values[int(partition)].append(value)
    return values


READERS: tuple[Reader, ...] = (librdkafka, aiokafka, kafka_python, ours)
