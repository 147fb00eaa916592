from __future__ import annotations

from confluent_kafka import Producer

from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey


def test_the_cluster_and_what_its_brokers_serve_are_reported(admin, bootstrap):
    cluster = admin.describe_cluster()
    (broker,) = cluster.brokers
    assert f"{broker.host}:{broker.port}" == bootstrap
    assert cluster.cluster_id
    assert cluster.controller_id == broker.broker_id
    assert admin.api_versions(broker.broker_id).best(ApiKey.METADATA) == 13


def test_log_directories_report_the_size_of_every_replica(admin, bootstrap, topic):
    admin.make(topic)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, bytes(1000))
    assert producer.flush(30) == 0
    (directories,) = admin.describe_log_dirs(topics=[topic]).values()
    (directory,) = directories.values()
    assert list(directory.replicas) == [TopicPartition(topic, 0)]
    replica = directory.replicas[TopicPartition(topic, 0)]
    assert replica.size_bytes > 1000
    assert (replica.offset_lag, replica.is_future) == (0, False)
    assert directory.usable_bytes is not None


def test_producers_of_a_partition_are_reported(admin, bootstrap, topic):
    admin.make(topic)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    producer.produce(topic, b"one")
    producer.produce(topic, b"two")
    assert producer.flush(30) == 0
    partition = TopicPartition(topic, 0)
    (state,) = admin.describe_producers([partition])[partition]
    assert (state.producer_epoch, state.last_sequence) == (0, 1)
    assert state.current_transaction_start_offset is None
