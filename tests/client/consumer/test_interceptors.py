"""Interceptors of a consumer: called for each record and commit; they may change records, and do no harm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from odradek import Consumer, Producer, TopicPartition
from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.interceptors import ConsumerInterceptor
from odradek.testing import Cluster

Records = list[ConsumerRecord[bytes, bytes]]


class Even(ConsumerInterceptor[bytes, bytes]):
    """Lets only even numbers through."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.committed: list[Mapping[TopicPartition, OffsetAndMetadata]] = []

    def on_consume(self, records: Records) -> Records:
        self.seen += [record.offset for record in records]
        return [record for record in records if record.offset % 2 == 0]

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.committed.append(offsets)


class Broken(ConsumerInterceptor[Any, Any]):
    def on_consume(self, records: Records) -> Records:
        raise RuntimeError("a user's mistake")

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        raise RuntimeError("another one")


@pytest.fixture
def filled(cluster: Cluster, topic: str) -> TopicPartition:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0)
    return TopicPartition(topic, 0)


def test_each_record_is_seen_once_and_what_is_left_out_counts_as_read(
    cluster: Cluster, filled: TopicPartition
) -> None:
    even = Even()
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=filled.topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=4,
        interceptors=[Broken(), even],
    ) as consumer:
        consumer.assign([filled])
        first = next(iter(consumer))
        offsets = [first.offset]
        while len(offsets) < 5:
            offsets += [record.offset for record in consumer.poll(10)]
        while consumer.position(filled) < 10:
            assert consumer.poll(0.1) == []
        consumer.commit()
        counted = consumer.statistics().records_returned

    assert offsets == [0, 2, 4, 6, 8]
    assert (even.seen, counted) == (list(range(10)), 10)
    assert [offsets[filled].offset for offsets in even.committed] == [10]


def test_one_that_raises_is_logged_and_costs_nothing(
    cluster: Cluster, filled: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    with Consumer(
        bootstrap_servers=cluster.bootstrap,
        group_id=filled.topic,
        auto_offset_reset="earliest",
        interceptors=[Broken()],
    ) as consumer:
        consumer.assign([filled])
        offsets: list[int] = []
        while len(offsets) < 10:
            offsets += [record.offset for record in consumer.poll(10)]
        consumer.commit()

    assert offsets == list(range(10))
    assert "a user's mistake" in caplog.text
    assert "another one" in caplog.text
