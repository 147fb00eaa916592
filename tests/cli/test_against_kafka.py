"""The commands work against Apache Kafka as against our own broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.conftest import Cli
from client.eventually import eventually
from kafka_peer import running_kafka

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with running_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield Cli(address)


def test_a_topic_from_its_making_to_its_end(kafka):
    kafka.run("topics", "create", "orders", "--partitions", "2", "--config", "retention.ms=-1")
    eventually(lambda: "orders" in kafka.lines("topics", "list"))
    kafka.run("produce", "orders", "-K", ":", "-p", "1", "-z", "zstd", "-H", "a=1", typed="k:one\nl:two\n")
    assert kafka.lines("consume", "orders", "-e", "-f", "%p %o %k %s %h\\n") == [
        "1 0 k one a=1",
        "1 1 l two a=1",
    ]
    assert kafka.lines("offsets", "get", "orders") == ["orders:0:0", "orders:1:2"]
    kafka.run("offsets", "delete-records", "orders", "--before", "1", "--partitions", "1")
    assert kafka.lines("consume", "orders", "-e", "-o", "beginning") == ["two"]
    kafka.run("topics", "alter", "orders", "--partitions", "3")
    eventually(lambda: len(kafka.lines("topics", "describe", "orders")) == 4)
    kafka.run("configs", "alter", "--topic", "orders", "--add-config", "segment.ms=1000000")
    eventually(lambda: len(kafka.objects("configs", "describe", "--topic", "orders")) >= 2)
    kafka.run("topics", "delete", "orders")
    eventually(lambda: "orders" not in kafka.lines("topics", "list"))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_from_its_first_record_to_its_end(kafka, protocol):
    topic, group = f"read-by-{protocol}", f"group-{protocol}"
    kafka.run("topics", "create", topic)
    eventually(lambda: topic in kafka.lines("topics", "list"))
    kafka.run("produce", topic, typed="one\ntwo\nthree\n")
    read = ("consume", topic, "--group", group, "-X", f"group.protocol={protocol}")
    assert kafka.lines(*read, "-c", "2") == ["one", "two"]
    (row,) = kafka.objects("groups", "describe", group)
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (2, 3, 1)
    listed = {"group": group, "type": protocol.capitalize(), "state": "Empty"}
    assert listed in kafka.objects("groups", "list", "--type", protocol)
    kafka.run("groups", "reset-offsets", group, "--all-topics", "--shift-by", "-1", "--execute")
    assert kafka.lines(*read, "-e") == ["two", "three"]
    kafka.run("groups", "delete-offsets", group, "--topic", topic)
    assert kafka.objects("groups", "describe", group) == []
    kafka.run("groups", "delete", group)
    assert "there is no group" in kafka.error("groups", "describe", group)


def test_the_cluster_is_described(kafka):
    host, port = kafka.bootstrap.split(":")
    (broker,) = kafka.objects("cluster", "describe")
    assert (broker["host"], str(broker["port"]), broker["controller"]) == (host, port, True)
    assert any(row["api"] == "Fetch" for row in kafka.objects("cluster", "api-versions"))
    (document,) = kafka.objects("cluster", "log-dirs")
    assert document["brokers"][0]["logDirs"]


def test_a_refusal_is_reported_in_kafkas_words(kafka):
    reported = kafka.error("topics", "create", "wide", "--replication-factor", "3")
    assert "replication" in reported.lower()


@pytest.mark.parametrize("flags", [[], ["--table"]], ids=["records", "tables"])
def test_kafka_is_measured(kafka, flags):
    (sent,) = kafka.objects("bench", "produce", "--records", "500", "--partitions", "2", *flags)
    (read,) = kafka.objects("bench", "consume", "--records", "500", "--group", "measuring", *flags)
    assert (sent["records"], read["records"]) == (500, 500)
    assert [row["records"] for row in kafka.objects("bench", "latency", "--records", "5")] == [5, 5]
    eventually(lambda: not any(name.startswith("odradek-bench") for name in kafka.lines("topics", "list")))
