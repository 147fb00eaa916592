"""Kafka's own tools of two versions produce to our broker, consume from it, and ask it all they can ask.

What they must print was compared with what they print about Apache Kafka 4.3.1.
"""

from __future__ import annotations

import json
import re

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from compat.java_tools import NEWEST, WITH_ZOOKEEPER, printed

pytestmark = [pytest.mark.java, pytest.mark.slow]

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
BEGIN_MS = 1_700_000_000_000
BOTH = pytest.mark.parametrize("version", [NEWEST, WITH_ZOOKEEPER])
# 3.9 still has some tools in Scala, and other names for the options of the console's two.
CONSOLE_PRODUCER = {NEWEST: "ConsoleProducer", WITH_ZOOKEEPER: "kafka.tools.ConsoleProducer"}
API_VERSIONS = {NEWEST: "BrokerApiVersionsCommand", WITH_ZOOKEEPER: "kafka.admin.BrokerApiVersionsCommand"}
READER = {NEWEST: "--reader-property", WITH_ZOOKEEPER: "--property"}
FORMATTER = {NEWEST: "--formatter-property", WITH_ZOOKEEPER: "--property"}


@pytest.fixture
def server(bootstrap: str) -> tuple[str, str]:
    return "--bootstrap-server", bootstrap


@pytest.fixture
def librdkafka(bootstrap: str) -> Librdkafka:
    """Prepares, and looks at what is there afterwards, without another JVM."""
    return Librdkafka(bootstrap)


@BOTH
def test_console_producer_and_consumer_pass_keys_and_values_on(server, topic, version):
    options = (READER[version], "parse.key=true", READER[version], "key.separator=:")
    lines = "".join(f"key:value {index}\n" for index in range(3))
    printed(CONSOLE_PRODUCER[version], *server, "--topic", topic, *options, stdin=lines, version=version)

    place = ("--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "3")
    shown = (FORMATTER[version], "print.key=true", FORMATTER[version], "print.offset=true")
    reported = printed(CONSOLE_CONSUMER, *server, *place, *shown, version=version)
    assert reported.splitlines() == [f"Offset:{index}\tkey\tvalue {index}" for index in range(3)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_producer_performance_produces_what_it_says(bootstrap, librdkafka, topic, codec):
    load = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    settings = (f"bootstrap.servers={bootstrap}", f"compression.type={codec}", "acks=all")
    reported = printed("ProducerPerformance", "--topic", topic, *load, "--producer-props", *settings)
    assert re.search(r"^20000 records sent, [\d.]+ records/sec", reported, re.MULTILINE)
    assert librdkafka.first_and_next_offset(topic) == (0, 20000)


@BOTH
def test_offsets_are_found_by_time_and_after_deleting_records(server, librdkafka, topic, tmp_path, version):
    librdkafka.create_topic(topic, partitions=2)
    librdkafka.produce(topic, [Record(b"x", timestamp_ms=BEGIN_MS + index) for index in range(10)])
    wanted = [{"topic": topic, "partition": 0, "offset": 2}]
    (tmp_path / "delete.json").write_text(json.dumps({"partitions": wanted, "version": 1}))
    deleting = ("--offset-json-file", str(tmp_path / "delete.json"))
    reported = printed("DeleteRecordsCommand", *server, *deleting, version=version)
    assert f"partition: {topic}-0\tlow_watermark: 2" in reported

    times = {"earliest": (2, 0), "latest": (10, 0), "max-timestamp": (9, None), str(BEGIN_MS + 5): (5, None)}
    for when, offsets in times.items():
        reported = printed("GetOffsetShell", *server, "--topic", topic, "--time", when, version=version)
        rows = [f"{topic}:{index}:{offset}" for index, offset in enumerate(offsets) if offset is not None]
        assert reported.split() == rows, when


@BOTH
def test_log_dirs_are_described(server, librdkafka, topic, version):
    librdkafka.create_topic(topic, partitions=2)
    reported = printed("LogDirsCommand", *server, "--describe", "--topic-list", topic, version=version)
    assert "Received log directory information from brokers 0" in reported
    ((broker,),) = (json.loads(line)["brokers"] for line in reported.splitlines() if line.startswith("{"))
    ((log_dir),) = broker["logDirs"]
    assert (broker["broker"], log_dir["error"]) == (0, None)
    assert sorted(one["partition"] for one in log_dir["partitions"]) == [f"{topic}-0", f"{topic}-1"]
    assert all(
        (one["size"], one["offsetLag"], one["isFuture"]) == (0, 0, False) for one in log_dir["partitions"]
    )


def test_the_cluster_tool_reports_the_id_and_the_broker(bootstrap, server):
    assert re.fullmatch(r"Cluster ID: [\w-]{22}", printed("ClusterTool", "cluster-id", *server).strip())
    header, row = printed("ClusterTool", "list-endpoints", *server).splitlines()
    host, port = bootstrap.split(":")
    assert header.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row.split() == ["0", host, port, "null", "unfenced", "broker"]


@BOTH
def test_every_api_we_offer_is_usable_by_java_clients(bootstrap, server, version):
    reported = printed(API_VERSIONS[version], *server, version=version)
    assert reported.startswith(f"{bootstrap} (id: 0 rack: null")
    offered = re.findall(r"^\t(\w+)\(\d+\): (\d.*?),?$", reported, re.MULTILINE)
    assert {"Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics", "DescribeConfigs"} <= {
        name for name, _ in offered
    }
    assert all("usable:" in versions for _, versions in offered)
