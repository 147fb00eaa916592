"""Java's consumers in groups of ours, beside librdkafka's, and Kafka's tools on groups and their records."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat.java_tools import QUICK_JVM, RUN_CLASS, printed
from odradek.testing import Cluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PARTITIONS, TIMEOUT_S = 4, 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {
        "group.consumer.heartbeat.interval.ms": 200,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.assignment.interval.ms": 0,
    }
    with Cluster(settings) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-z0-9_-]", "-", request.node.name)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values():
        made.result()
    return name


def write(cluster: Cluster, topic: str, begin: int, end: int) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    for number in range(begin, end):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0


class ConsoleMember:
    """Java's console consumer as a member, and the values that it printed."""

    def __init__(self, cluster: Cluster, topic: str, protocol: str) -> None:
        settings = ("auto.offset.reset=earliest", f"group.protocol={protocol}", "metadata.max.age.ms=1000")
        options = [word for one in settings for word in ("--command-property", one)]
        place = ("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--group", topic)
        self.process = subprocess.Popen(
            [str(RUN_CLASS), CONSOLE_CONSUMER, *place, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"KAFKA_HEAP_OPTS": QUICK_JVM},
        )
        self.values: list[int] = []
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        self.values += (int(line) for line in self.process.stdout if line.strip().isdigit())

    def stop(self) -> None:
        """It commits and leaves when it is terminated."""
        self.process.terminate()
        self.process.wait(TIMEOUT_S)
        self._listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def read_on(consumer: confluent_kafka.Consumer, values: list[int], is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_done():
        assert time.monotonic() < deadline, "it did not come to pass"
        read = [int(one.value()) for one in consumer.consume(50, 0.1) if one.error() is None]
        values += read
        if read:
            consumer.commit(asynchronous=False)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_java_and_librdkafka_share_a_group_and_nothing_is_skipped_or_read_twice(cluster, topic, protocol):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": topic,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        | ({"partition.assignment.strategy": "range"} if protocol == "classic" else {})
    )
    consumer.subscribe([topic], on_assign=lambda *_: None, on_revoke=lambda *_: None)
    ours: list[int] = []
    write(cluster, topic, 0, 100)
    read_on(consumer, ours, lambda: len(ours) == 100)
    java = ConsoleMember(cluster, topic, protocol)
    try:
        read_on(consumer, ours, lambda: len(consumer.assignment()) == PARTITIONS // 2)
        write(cluster, topic, 100, 200)
        read_on(consumer, ours, lambda: len(ours) == 150)
    finally:
        java.stop()
    write(cluster, topic, 200, 300)
    read_on(consumer, ours, lambda: len(ours) + len(java.values) >= 300)
    consumer.close()
    assert sorted(ours + java.values) == list(range(300))


def test_the_group_command_describes_resets_and_deletes(cluster, topic):
    write(cluster, topic, 0, 8)
    server = ("--bootstrap-server", cluster.bootstrap)
    printed(
        CONSOLE_CONSUMER,
        *server,
        "--topic",
        topic,
        "--group",
        topic,
        "--from-beginning",
        "--max-messages",
        "8",
    )
    assert topic in printed(GROUPS, *server, "--list").split()
    reported = printed(GROUPS, *server, "--describe", "--group", topic)
    assert len(re.findall(rf"{topic}\s+{topic}\s+\d\s+2\s+2\s+0\s", reported)) == PARTITIONS

    place = ("--group", topic, "--topic", topic)
    printed(GROUPS, *server, "--reset-offsets", *place, "--to-offset", "1", "--execute")
    reported = printed(GROUPS, *server, "--describe", "--group", topic)
    assert len(re.findall(rf"{topic}\s+{topic}\s+\d\s+1\s+2\s+1\s", reported)) == PARTITIONS
    printed(GROUPS, *server, "--delete-offsets", *place)
    printed(GROUPS, *server, "--delete", "--group", topic)
    assert topic not in printed(GROUPS, *server, "--list").split()


def test_kafkas_dump_reads_the_records_of_both_protocols(cluster, topic):
    for protocol in ("classic", "consumer"):
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": f"{topic}-{protocol}", "log_level": 0}
            | {"group.protocol": protocol, "auto.offset.reset": "earliest"}
        )
        write(cluster, topic, 0, 1)
        consumer.subscribe([topic if protocol == "classic" else f"^{topic}"])
        assert consumer.poll(TIMEOUT_S) is not None
        consumer.commit(asynchronous=False)
        consumer.close()
    (segment,) = (cluster.data_dir / "__consumer_offsets-0").glob("*.log")
    reported = printed("DumpLogSegments", "--offsets-decoder", "--files", str(segment))
    for group, kinds in ((f"{topic}-classic", (1, 2)), (f"{topic}-consumer", (1, 3, 5, 6, 7, 8, 16))):
        for kind in kinds:
            assert re.search(rf'key: {{"type":"{kind}","data":{{"group(Id)?":"{group}"', reported), (
                group,
                kind,
            )
    assert "Error at offset" not in reported
    assert "isvalid: false" not in reported
