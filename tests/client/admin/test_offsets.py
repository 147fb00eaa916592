from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer

from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.offsets import TO_HIGH_WATERMARK, OffsetSpec
from odradek.client.broker_errors import OffsetOutOfRange, UnknownTopicOrPartition
from odradek.common.ids import TopicPartition


@pytest.fixture
def filled(admin, bootstrap, topic):
    """A topic with two partitions: ten records at 1000, 2000 … in the first, none in the second."""
    admin.make(topic, num_partitions=2)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for number in range(1, 11):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=number * 1000)
    assert producer.flush(30) == 0
    return TopicPartition(topic, 0), TopicPartition(topic, 1)


def offset(admin, partition, at):
    return admin.list_offsets({partition: at})[partition].offset


def test_offsets_are_found_by_name_and_by_time(admin, filled):
    full, empty = filled
    assert offset(admin, full, OffsetSpec.EARLIEST) == 0
    assert offset(admin, full, OffsetSpec.LATEST) == 10
    assert offset(admin, full, 4500) == 4
    assert offset(admin, full, 99_000) == -1
    found = admin.list_offsets({full: OffsetSpec.MAX_TIMESTAMP, empty: OffsetSpec.MAX_TIMESTAMP})
    assert (found[full].offset, found[full].timestamp_ms) == (9, 10_000)
    assert found[empty].offset == -1


def test_a_partition_that_does_not_exist_does_not_hide_the_others(admin, filled):
    full, _ = filled
    missing = [TopicPartition(full.topic, 7), TopicPartition(full.topic + "-missing", 0)]
    found = admin.list_offsets(dict.fromkeys([full, *missing], OffsetSpec.LATEST))
    assert found[full].offset == 10
    for partition in missing:
        assert isinstance(found[partition], UnknownTopicOrPartition)


def test_records_before_an_offset_are_deleted(admin, filled):
    full, _ = filled
    assert admin.delete_records({full: 4}) == {full: 4}
    assert offset(admin, full, OffsetSpec.EARLIEST) == 4
    assert isinstance(admin.delete_records({full: 11})[full], OffsetOutOfRange)
    assert admin.delete_records({full: TO_HIGH_WATERMARK}) == {full: 10}


def test_many_questions_about_one_topic_at_once_do_not_disturb_each_other(bootstrap, filled):
    full, empty = filled

    async def scenario() -> None:
        async with AsyncAdmin(bootstrap_servers=bootstrap) as admin:
            asked = [
                admin.list_offsets({full: OffsetSpec.LATEST, empty: OffsetSpec.LATEST}) for _ in range(20)
            ]
            for found in await asyncio.gather(*asked):
                assert (found[full].offset, found[empty].offset) == (10, 0)

    asyncio.run(scenario())
