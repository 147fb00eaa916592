"""Topics, and what readers of committed and of all records see of them, for the tests of transactions."""

from __future__ import annotations

import time
from typing import Any

import pytest

from odradek import Admin, Consumer, TopicPartition

PARTITIONS = 3
ON_KAFKA = (pytest.mark.java, pytest.mark.long)


def partitions_of(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def make_topic(bootstrap: str, topic: str) -> str:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, num_partitions=PARTITIONS)
    return topic


def a_consumer(bootstrap: str, topic: str, isolation_level: str) -> Consumer[Any, Any]:
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=bootstrap, isolation_level=isolation_level, fetch_max_wait_ms=20
    )
    consumer.assign(partitions_of(topic))
    consumer.seek_to_beginning()
    return consumer


def _is_at_end(consumer: Consumer[Any, Any], ends: dict[TopicPartition, int]) -> bool:
    return all(consumer.position(partition) >= end for partition, end in ends.items())


def values(bootstrap: str, topic: str, isolation_level: str = "read_committed") -> list[bytes]:
    """All values up to the last stable offset (or the end), sorted."""
    partitions = values_by_partition(bootstrap, topic, isolation_level)
    return sorted(value for values in partitions for value in values)


def values_by_partition(
    bootstrap: str, topic: str, isolation_level: str = "read_committed"
) -> list[list[bytes]]:
    """The same of each partition, in the order in which they are read."""
    found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    with a_consumer(bootstrap, topic, isolation_level) as consumer:
        ends = consumer.end_offsets(partitions_of(topic))
        deadline = time.monotonic() + 60
        while not _is_at_end(consumer, ends):
            assert time.monotonic() < deadline, f"{sum(map(len, found))} records"
            for record in consumer.poll(0.2):
                found[record.partition].append(record.value)
    return found


def table_values(bootstrap: str, topic: str) -> list[bytes]:
    """The same for committed records, read as tables."""
    found: list[bytes] = []
    with a_consumer(bootstrap, topic, "read_committed") as consumer:
        ends = consumer.end_offsets(partitions_of(topic))
        deadline = time.monotonic() + 60
        while not _is_at_end(consumer, ends):
            assert time.monotonic() < deadline, f"{len(found)} records"
            found += consumer.poll_table(0.2).column("value").to_pylist()
    return sorted(found)
