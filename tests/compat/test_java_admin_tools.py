"""Kafka 4.3's own command-line tools administer our broker: topics, partitions, settings."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from compat.java_tools import run_tool

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPICS, CONFIGS = "TopicCommand", "kafka.admin.ConfigCommand"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(bootstrap: str) -> Run:
    """Runs a tool against the module's broker."""
    return lambda tool, *arguments: run_tool(tool, "--bootstrap-server", bootstrap, *arguments)


def test_topic_command_makes_grows_describes_and_deletes_a_topic(run):
    made = run(TOPICS, "--create", "--topic", "orders", "--partitions", "2", "--config", "retention.ms=1000")
    assert "Created topic orders." in made.stdout
    assert run(TOPICS, "--alter", "--topic", "orders", "--partitions", "3").returncode == 0

    reported = run(TOPICS, "--describe", "--topic", "orders").stdout
    assert "PartitionCount: 3\tReplicationFactor: 1\tConfigs: retention.ms=1000" in reported
    assert reported.count("Leader: 0\tReplicas: 0\tIsr: 0") == 3

    assert run(TOPICS, "--delete", "--topic", "orders").returncode == 0
    assert "orders" not in run(TOPICS, "--list").stdout.split()


def test_config_command_changes_and_describes_settings_of_topics_and_brokers(run):
    run(TOPICS, "--create", "--topic", "orders")
    run(CONFIGS, "--alter", "--topic", "orders", "--add-config", "cleanup.policy=compact")
    assert (
        "cleanup.policy=compact sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact, "
        "DEFAULT_CONFIG:log.cleanup.policy=delete}" in run(CONFIGS, "--describe", "--topic", "orders").stdout
    )

    cluster = ("--entity-type", "brokers", "--entity-default")
    run(CONFIGS, "--alter", *cluster, "--add-config", "log.retention.ms=7000")
    assert (
        "log.retention.ms=7000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7000}"
        in run(CONFIGS, "--describe", *cluster).stdout
    )

    typo = run(CONFIGS, "--alter", "--broker", "0", "--add-config", "log.retention.mss=1")
    assert typo.returncode == 1
    assert "did you mean log.retention.ms?" in typo.stderr
