"""`Consumer.assign_range`: one partition from one offset to another, and nothing fetched beyond."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek import Admin, Consumer, Producer, TopicPartition
from odradek.client.consumer.errors import NoOffset
from odradek.testing import Cluster


@pytest.fixture
def partition(cluster: Cluster, topic: str) -> TopicPartition:
    """A partition with the records 0 to 999, ten in each batch."""
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for begin in range(0, 1000, 10):
            for number in range(begin, begin + 10):
                producer.send(topic, b"%d" % number, partition=0)
            producer.flush()
    return TopicPartition(topic, 0)


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[Consumer[bytes, bytes]]:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="none") as consumer:
        yield consumer


def read(consumer: Consumer[bytes, bytes], partition: TopicPartition, start: int, end: int) -> list[int]:
    """The offsets that are polled until the position reaches the end."""
    consumer.assign_range(partition, start, end)
    found: list[int] = []
    while consumer.position(partition) < end:
        table = consumer.poll_table(10)
        assert table.column("value").to_pylist() == [b"%d" % at for at in table.column("offset").to_pylist()]
        found += table.column("offset").to_pylist()
    return found


def test_a_range_is_read_whole_and_nothing_is_fetched_behind_it(
    cluster: Cluster, consumer: Consumer[bytes, bytes], partition: TopicPartition
) -> None:
    assert read(consumer, partition, 123, 1000) == list(range(123, 1000))
    assert consumer.assignment() == {partition}
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send(partition.topic, b"1000", partition=0)
    assert consumer.poll_table(0.3).num_rows == 0
    assert read(consumer, partition, 1000, 1001) == [1000]


def test_ranges_follow_each_other_forwards_and_backwards(
    consumer: Consumer[bytes, bytes], partition: TopicPartition
) -> None:
    for start, end in ((500, 600), (990, 1000), (0, 10), (600, 601)):
        found = read(consumer, partition, start, end)
        assert found[: end - start] == list(range(start, end))


def test_offsets_that_are_gone_are_an_error_and_the_next_range_is_read(
    cluster: Cluster, consumer: Consumer[bytes, bytes], partition: TopicPartition
) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.delete_records({partition: 700})
    with pytest.raises(NoOffset):
        read(consumer, partition, 5, 10)
    assert read(consumer, partition, 990, 1000) == list(range(990, 1000))
