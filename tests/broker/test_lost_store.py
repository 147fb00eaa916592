"""Forks, lost stores and strays, with brokers that run: no partition is set aside in silence."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.broker.lost_store import CannotAdopt
from odradek.testing import Cluster

STORE = "coordination.db"


def produce(bootstrap: str, values: list[str], topic: str = "orders") -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def consume(bootstrap: str, topic: str = "orders") -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "enable.auto.commit": False})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        while len(found) < end:
            record = consumer.poll(30)
            assert record is not None
            assert record.error() is None
            found.append(record.value().decode())
        return found
    finally:
        consumer.close()


def odradek(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def topic_ids(bootstrap: str, *topics: str) -> list[str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: its futures fail without it
    described = admin.describe_topics(TopicCollection(list(topics)))
    return [str(described[topic].result(30).topic_id) for topic in topics]


def remove_store(directory: Path) -> None:
    for path in directory.glob(f"{STORE}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_fork_of_a_running_broker_is_served_with_its_topics(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path / "data", process=True, num_partitions=2) as original:
        produce(original.bootstrap, ["before"])
        stopping = threading.Event()

        def load() -> None:
            while not stopping.is_set():
                produce(original.bootstrap, ["during"] * 20)

        loading = threading.Thread(target=load)
        loading.start()
        forked = odradek("log", "fork", tmp_path / "data", tmp_path / "fork")
        stopping.set()
        loading.join()
        assert forked.returncode == 0, forked.stderr
        with Cluster(data_dir=tmp_path / "fork", num_partitions=2) as copy:
            served = consume(copy.bootstrap)
            assert served[0] == "before"
            assert served == consume(original.bootstrap)[: len(served)]
            assert topic_ids(copy.bootstrap, "orders") == topic_ids(original.bootstrap, "orders")
            produce(copy.bootstrap, ["fork only"])
            assert consume(copy.bootstrap)[-1] == "fork only"
        assert "fork only" not in consume(original.bootstrap)
    assert not list((tmp_path / "fork").glob("*-stray"))


def test_a_fork_of_a_stopped_broker_is_served_under_its_broker_id(tmp_path: Path) -> None:
    settings = {"broker.id": 7}
    with Cluster(settings, data_dir=tmp_path / "data") as original:
        produce(original.bootstrap, ["a", "b"])
    assert odradek("log", "fork", tmp_path / "data", tmp_path / "fork").returncode == 0
    with Cluster(settings, data_dir=tmp_path / "fork") as copy:
        assert consume(copy.bootstrap) == ["a", "b"]


def test_topics_of_a_lost_store_are_created_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(data_dir=tmp_path, num_partitions=2)
    with cluster:
        produce(cluster.bootstrap, ["a", "b"])
        ids = topic_ids(cluster.bootstrap, "orders")
        cluster_id = cluster.look(lambda server: server.node.cluster_id)
    remove_store(tmp_path)
    with caplog.at_level(logging.WARNING), cluster:
        assert "created again" in caplog.text
        assert "orders (2 partitions)" in caplog.text
        produce(cluster.bootstrap, ["c"])
        assert consume(cluster.bootstrap) == ["a", "b", "c"]
        assert topic_ids(cluster.bootstrap, "orders") == ids
        assert cluster.look(lambda server: server.node.cluster_id) == cluster_id
        retention = cluster.look(
            lambda server: server.services.replicas.get("orders", 0).log.config.retention_ms
        )
        assert retention == -1
    assert odradek("log", "verify", tmp_path).returncode == 0
    caplog.clear()
    with cluster:
        assert consume(cluster.bootstrap) == ["a", "b", "c"]
        assert "created again" not in caplog.text


def test_a_topic_with_missing_partitions_is_refused_each_time(tmp_path: Path) -> None:
    cluster = Cluster(data_dir=tmp_path, num_partitions=3)
    with cluster:
        produce(cluster.bootstrap, ["a"])
    remove_store(tmp_path)
    shutil.rmtree(tmp_path / "orders-1")
    for _ in range(2):
        with pytest.raises(CannotAdopt, match=r"without partitions \[1\] of their topic: orders-0, orders-2"):
            cluster.start()
    assert sorted(path.name for path in tmp_path.glob("orders-*")) == ["orders-0", "orders-2"]


def test_a_topic_without_an_id_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(data_dir=tmp_path)
    with cluster:
        produce(cluster.bootstrap, ["a"])
    remove_store(tmp_path)
    (tmp_path / "orders-0" / "partition.metadata").unlink()
    with pytest.raises(CannotAdopt, match=r"without one topic id in partition\.metadata: orders-0"):
        cluster.start()


def test_strays_are_named_in_a_warning_and_listed_by_verify(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster(data_dir=tmp_path)
    with cluster:
        produce(cluster.bootstrap, ["a"])
        produce(cluster.bootstrap, ["b"], topic="payments")
    shutil.copytree(tmp_path / "orders-0", tmp_path / "returns-0")
    with caplog.at_level(logging.WARNING), cluster:
        (stray,) = tmp_path.glob("*-stray")
        assert f"kept as strays and not served: {stray}" in caplog.text
        assert consume(cluster.bootstrap) == ["a"]
    verified = odradek("log", "verify", tmp_path)
    assert verified.returncode == 1
    assert f"{stray}: a stray partition" in verified.stdout
    assert "rename it to returns-0" in verified.stdout
    caplog.clear()
    with cluster:
        assert f"kept from earlier and not served: {stray}" in caplog.text
