"""Several brokers in a test: started, killed, paused, wiped."""

from __future__ import annotations

import os
import time

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from client.eventually import eventually
from odradek import Admin
from odradek.testing import Cluster, ClusterError
from odradek.testing.live_brokers import live_brokers

pytestmark = pytest.mark.slow


def brokers_running() -> list[psutil.Process]:
    return [one for child in psutil.Process().children() for one in child.children()]


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    failed = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(60) == 0
    assert failed == []


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        values += [one.value() for one in consumer.consume(count, 1) if one.error() is None]
    consumer.close()
    return values


def is_in_sync(admin: Admin, topic: str, count: int) -> bool:
    described = admin.describe_topic(topic)
    return all(len(one.isr) == count and one.leader is not None for one in described.partitions)


def test_three_brokers_know_each_other_and_leave_nothing_behind():
    cluster = Cluster(brokers=3)
    with cluster:
        assert len(cluster.bootstrap.split(",")) == 3
        for broker_id in cluster.broker_ids:
            assert live_brokers(cluster.address(broker_id)) == {0, 1, 2}
        assert len(brokers_running()) == 3
        directory = cluster.data_dir
        assert cluster.broker_dir(2).is_dir()
    assert not directory.exists()
    assert brokers_running() == []


def test_a_killed_broker_comes_back_on_its_data_and_port():
    with Cluster(brokers=3) as cluster, Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic("a", num_partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"})
        produce(cluster.bootstrap, "a", [b"%d" % number for number in range(100)])
        leader = admin.describe_topic("a").partitions[0].leader
        address = cluster.address(leader)

        cluster.kill(leader)
        produce(cluster.bootstrap, "a", [b"%d" % number for number in range(100, 200)])
        cluster.restart(leader)

        assert cluster.address(leader) == address
        eventually(lambda: is_in_sync(admin, "a", 3))
        assert consume(cluster.bootstrap, "a", 200) == [b"%d" % number for number in range(200)]


def test_a_wiped_broker_copies_everything_again():
    with Cluster(brokers=3) as cluster, Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic("a", num_partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"})
        produce(cluster.bootstrap, "a", [b"x" * 1000] * 100)
        with pytest.raises(ClusterError, match="broker 1 runs"):
            cluster.wipe(1)
        cluster.kill(1)
        cluster.wipe(1)
        assert not cluster.broker_dir(1).exists()
        cluster.start(1)
        eventually(lambda: is_in_sync(admin, "a", 3))
        sizes = [
            directory.replicas
            for directories in admin.describe_log_dirs(topics=["a"]).values()
            for directory in directories.values()
        ]
        assert len({replica.size_bytes for replicas in sizes for replica in replicas.values()}) == 1


def test_a_paused_broker_stands_still_until_it_is_resumed():
    with Cluster(brokers=2) as cluster:
        cluster.pause(1)
        assert [one.status() for one in brokers_running()].count(psutil.STATUS_STOPPED) == 1
        cluster.resume(1)
        assert live_brokers(cluster.address(1)) == {0, 1}
        cluster.pause(1)  # close must not wait for it


def test_settings_are_refused_with_the_broker_that_has_them():
    refused = pytest.raises(ClusterError, match=r"broker \d did not start.*did you mean num\.partitions\?")
    with refused, Cluster(brokers=2, num_partition=3):
        pytest.fail("started")


def test_a_broker_that_ended_by_itself_fails_the_test():
    cluster = Cluster(brokers=2)
    cluster.start()
    os.kill(brokers_running()[0].pid, 9)
    with pytest.raises(ClusterError, match="ended with exit code -9"):
        cluster.close()


def test_the_brokers_end_with_the_process_that_starts_them():
    cluster = Cluster(brokers=2)
    cluster.start()
    found = brokers_running()
    (starter,) = {one.parent() for one in found}
    starter.kill()
    gone, alive = psutil.wait_procs(found, timeout=60)
    assert (len(gone), alive) == (2, [])
    with pytest.raises(ClusterError):
        cluster.close()
