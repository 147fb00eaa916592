"""Where Kafka has a tool, ours prints the same lines: both are asked about the same broker."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = [pytest.mark.java, pytest.mark.slow]

RUN_CLASS = Path(__file__).resolve().parents[2] / "bench" / "peers" / "run-class"
TOPICS, OFFSETS, CONFIGS = "TopicCommand", "GetOffsetShell", "kafka.admin.ConfigCommand"
LOG_DIRS, VERSIONS, CLUSTER = "LogDirsCommand", "BrokerApiVersionsCommand", "ClusterTool"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture
def kafka(cli):
    def run(tool: str, *arguments: str) -> list[str]:
        command = [str(RUN_CLASS), tool, *arguments, "--bootstrap-server", cli.bootstrap]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True
        ).stdout.splitlines()

    return run


@pytest.fixture
def filled(cli, topic, make_topic):
    make_topic(
        "--partitions", "2", "--config", "retention.ms=-1", "--config", "cleanup.policy=compact,delete"
    )
    cli.run("produce", topic, "-K", ":", "-p", "0", "-H", "a=1", typed="k:one\nl:two\n")
    return topic


def test_topics(cli, kafka, filled):
    assert cli.lines("topics", "describe", filled) == kafka(TOPICS, "--describe", "--topic", filled)
    assert cli.lines("topics", "list") == kafka(TOPICS, "--list")


def test_offsets(cli, kafka, filled):
    which = ("--topic-partitions", f"{filled}:0-1,{filled[:-1]}.:1", "--time", "latest")
    assert cli.lines("offsets", "get", "--regex", *which) == kafka(OFFSETS, *which)


@pytest.mark.parametrize("flags", [["--topic"], ["--broker", "0", "--all"]])
def test_configs(cli, kafka, filled, flags):
    flags = [*flags, filled] if flags == ["--topic"] else flags
    ours, theirs = cli.lines("configs", "describe", *flags), kafka(CONFIGS, "--describe", *flags)
    assert ours[0] == theirs[0]
    assert sorted(ours) == sorted(theirs)


def test_what_is_said_of_a_change(cli, kafka):
    default = ("--entity-type", "brokers", "--entity-default")
    change = (*default, "--add-config", "log.segment.delete.delay.ms=60000")
    assert cli.lines("configs", "alter", *change) == kafka(CONFIGS, "--alter", *change)
    assert cli.lines("configs", "describe", *default) == kafka(CONFIGS, "--describe", *default)
    cli.run("configs", "alter", *default, "--delete-config", "log.segment.delete.delay.ms")


def test_log_directories(cli, kafka, filled):
    (ours,) = [json.loads(line) for line in cli.lines("cluster", "log-dirs", filled)]
    theirs = json.loads(kafka(LOG_DIRS, "--describe", "--topic-list", filled)[-1])
    # Theirs come in the order of a hash table.
    theirs["brokers"][0]["logDirs"][0]["partitions"].sort(key=lambda one: one["partition"])
    assert ours == theirs


def test_the_cluster(cli, kafka):
    assert cli.lines("cluster", "id") == kafka(CLUSTER, "cluster-id")
    # Their usable versions are their client's, and their list has every API that some broker might serve.
    theirs = {line.partition(" [")[0] for line in kafka(VERSIONS)}
    for line in cli.lines("cluster", "api-versions"):
        assert line.partition(" [")[0] in theirs


def test_console_consumer(cli, kafka, filled):
    shown = ("timestamp", "partition", "offset", "headers", "key")
    flags = [word for name in shown for word in ("--property", f"print.{name}=true")]
    theirs = kafka(
        CONSUMER, "--topic", filled, "--partition", "0", "--offset", "0", "--max-messages", "2", *flags
    )
    theirs = [line for line in theirs if not line.startswith("Option --property is deprecated")]
    assert cli.lines("consume", filled, "-c", "2", *flags) == theirs
