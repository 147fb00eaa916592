from __future__ import annotations

import pytest

from client.eventually import eventually
from odradek.client.admin.topics import NewTopic
from odradek.client.broker_errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopicException,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)


def test_a_topic_is_made_listed_described_and_deleted(admin, topic):
    made = admin.make(topic, num_partitions=3, configs={"retention.ms": "1000"})
    assert (made.name, made.num_partitions, made.replication_factor) == (topic, 3, 1)
    assert made.configs["retention.ms"] == "1000"

    (listed,) = [one for one in admin.list_topics() if one.name == topic]
    assert (listed.topic_id, listed.num_partitions, listed.is_internal) == (made.topic_id, 3, False)

    described = admin.describe_topic(topic)
    assert described.topic_id == made.topic_id
    assert described.replication_factor == 1
    (broker,) = admin.describe_cluster().brokers
    for number, partition in enumerate(described.partitions):
        assert (partition.partition, partition.leader) == (number, broker.broker_id)
        assert partition.replicas == partition.isr == (broker.broker_id,)
        assert not partition.is_under_replicated

    admin.delete_topic(topic)
    eventually(lambda: topic not in [one.name for one in admin.list_topics()])


def test_one_topic_that_cannot_be_made_does_not_hide_the_others(admin, topic):
    good, bad = NewTopic(topic), NewTopic(topic + "/x")
    outcomes = admin.create_topics([good, bad, NewTopic(topic + "-wide", replication_factor=9)])
    assert outcomes[good.name].name == topic
    assert isinstance(outcomes[bad.name], InvalidTopicException)
    assert isinstance(outcomes[topic + "-wide"], InvalidReplicationFactor)
    assert str(outcomes[topic + "-wide"])


def test_errors_of_single_calls_are_raised(admin, topic):
    with pytest.raises(UnknownTopicOrPartition):
        admin.describe_topic(topic)
    with pytest.raises(UnknownTopicOrPartition):
        admin.delete_topic(topic)
    admin.make(topic)
    with pytest.raises(TopicAlreadyExists, match="already exists"):
        admin.create_topic(topic)


def test_validate_only_makes_nothing(admin, topic):
    outcomes = admin.create_topics([NewTopic(topic, num_partitions=2)], validate_only=True)
    assert outcomes[topic].num_partitions == 2
    assert topic not in [one.name for one in admin.list_topics()]


def test_a_topic_is_placed_where_the_caller_says(admin, topic):
    (broker,) = admin.describe_cluster().brokers
    placed = NewTopic(topic, assignments={0: [broker.broker_id], 1: [broker.broker_id]})
    assert admin.create_topics([placed])[topic].num_partitions == 2


def test_a_topic_grows_and_never_shrinks(admin, topic):
    admin.make(topic, num_partitions=2)
    assert admin.create_partitions({topic: 4}) == {topic: None}
    eventually(lambda: len(admin.describe_topic(topic).partitions) == 4)
    assert isinstance(admin.create_partitions({topic: 3})[topic], InvalidPartitions)


def test_all_topics_are_described_when_none_is_named(admin, topic):
    admin.make(topic)
    assert topic in admin.describe_topics()
    assert admin.describe_topics([]) == {}


def test_a_description_of_very_many_partitions_comes_in_pages(admin, topic):
    admin.make(topic, num_partitions=25)
    rows = admin._background.call(_describe_in_small_pages(admin._admin, topic))
    assert [row.partition for row in rows] == list(range(25))


async def _describe_in_small_pages(admin, topic):
    from odradek.protocol.messages import DescribeTopicPartitionsRequest

    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequest.Topics(name=topic)], response_partition_limit=10
    )
    described = await admin._describe_by_page(request)
    return described[topic].partitions
