"""Every client library administers topics and their settings."""

from __future__ import annotations

import pytest

from compat.clients.face import Record


def test_a_topic_is_made_listed_grown_and_deleted(client, topic):
    client.create_topic(topic, partitions=2)
    assert topic in client.topics()
    assert client.partition_count(topic) == 2
    client.add_partitions(topic, 5)
    assert client.partition_count(topic) == 5
    client.delete_topic(topic)
    assert topic not in client.topics()


def test_a_topic_that_is_there_is_not_created_again(client, topic):
    client.create_topic(topic)
    with pytest.raises(Exception, match="already exists"):
        client.create_topic(topic)


def test_settings_are_given_described_and_altered(client, topic):
    client.create_topic(topic, retention_ms="86400000")
    configs = client.topic_configs(topic)
    assert configs["retention.ms"] == "86400000"
    assert configs["segment.bytes"] == str(2**30)
    assert len(configs) >= 30

    client.alter_topic_config(topic, "retention.ms", "1234567")
    assert client.topic_configs(topic)["retention.ms"] == "1234567"


def test_records_are_deleted_up_to_an_offset(client, topic):
    client.create_topic(topic)
    client.produce(topic, [Record(b"%d" % index) for index in range(10)])
    assert client.delete_records(topic, 7) == 7
    assert [one.record.value for one in client.consume(topic, 3, start=7)] == [b"7", b"8", b"9"]


def test_a_topic_created_again_under_its_name_is_empty(client, topic):
    client.create_topic(topic)
    client.produce(topic, [Record(b"old")])
    client.delete_topic(topic)
    client.create_topic(topic)
    assert client.first_and_next_offset(topic) == (0, 0)
    client.produce(topic, [Record(b"new")])
    assert [one.record.value for one in client.consume(topic, 1)] == [b"new"]


def test_the_cluster_is_described(client):
    assert client.broker_ids() == [0]
