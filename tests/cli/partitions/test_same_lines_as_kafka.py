"""Reassignments and elections on three brokers of Apache Kafka: its tools and ours print the same."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from cli.conftest import Cli
from kafka_peer import PEERS, running_kafka_cluster
from odradek import Admin, Producer, TopicPartition
from odradek.client.admin.topics import NewTopic

# A JVM for each line that is compared.
pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(900)]

REASSIGN, ELECT, TOPICS = "reassign.ReassignPartitionsCommand", "LeaderElectionCommand", "TopicCommand"


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    # One batch a fetch: throttled to 1000 B/s, a follower takes one in about 10 s.
    setting = "replica.fetch.max.bytes=1000"
    with running_kafka_cluster(tmp_path_factory.mktemp("kafka"), setting) as addresses:
        with Admin(bootstrap_servers=addresses) as admin:
            deadline = time.monotonic() + 60
            while len(admin.describe_cluster().brokers) < 3:
                assert time.monotonic() < deadline
        yield addresses


@pytest.fixture
def cli(bootstrap):
    return Cli(bootstrap)


@pytest.fixture
def kafka(bootstrap):
    def run(tool, *arguments, check=True):
        command = [str(PEERS / "run-class"), f"org.apache.kafka.tools.{tool}", *arguments]
        command += ["--bootstrap-server", bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=check)
        return done.stdout.splitlines()

    return run


@pytest.fixture
def placed(bootstrap, topic):
    """A topic with two partitions of 40 batches of 100 kB."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, assignments={0: [1, 2], 1: [2, 3]})])
    with Producer(bootstrap_servers=bootstrap, compression_type="none") as producer:
        for index in range(80):
            producer.send(topic, bytes(100_000), partition=index % 2)
    return topic


def write(path: Path, topic: str, replicas: dict[int, list[int]]) -> str:
    rows = [{"topic": topic, "partition": one, "replicas": some} for one, some in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return str(path)


def test_a_throttled_reassignment_from_beginning_to_end(cli, kafka, placed, tmp_path):
    plan = ("--reassignment-json-file", write(tmp_path / "plan.json", placed, {0: [3, 2], 1: [1, 2]}))
    to_move = tmp_path / "topics.json"
    to_move.write_text(json.dumps({"topics": [{"topic": placed}], "version": 1}))
    ours = cli.lines("partitions", "reassign", "generate", placed, "--broker-list", "1,2,3")
    theirs = kafka(
        REASSIGN, "--generate", "--topics-to-move-json-file", str(to_move), "--broker-list", "1,2,3"
    )
    # The proposals begin at a random broker.
    assert ours[:4] == theirs[:4]
    assert [row["partition"] for row in json.loads(ours[4])["partitions"]] == [0, 1]

    started = cli.lines("partitions", "reassign", "execute", *plan, "--throttle", "1000")
    # Again, now as an addition: the same lines but for the replicas, which now have the new ones, too.
    again = kafka(REASSIGN, "--execute", *plan, "--throttle", "1000", "--additional")
    assert [*started[:2], *started[3:]] == [*again[:2], *again[3:]]
    assert cli.lines("partitions", "reassign", "list") == kafka(REASSIGN, "--list")
    refused = cli.error("partitions", "reassign", "execute", *plan)
    assert "--additional" in refused
    ours = cli.run("partitions", "reassign", "verify", *plan, exit_code=1).stdout.splitlines()
    theirs = kafka(REASSIGN, "--verify", *plan)
    assert ours == theirs
    assert f"Reassignment of partition {placed}-0 is still in progress." in ours
    # Their settings are in the order of a hash table.
    assert cli.lines("topics", "describe", placed)[1:] == kafka(TOPICS, "--describe", "--topic", placed)[1:]
    under = cli.lines("topics", "describe", placed, "--under-replicated-partitions")
    assert under == kafka(TOPICS, "--describe", "--topic", placed, "--under-replicated-partitions")

    throttled = cli.objects("configs", "describe", "--topic", placed)
    assert any("throttled.replicas" in json.dumps(row) for row in throttled)
    (cancelled, *_) = cli.lines("partitions", "reassign", "cancel", *plan)
    assert cancelled == f"Successfully cancelled partition reassignments for: {placed}-0,{placed}-1"
    ours = cli.run("partitions", "reassign", "verify", *plan, exit_code=1).stdout.splitlines()
    assert ours == kafka(REASSIGN, "--verify", *plan)
    assert f"There is no active reassignment of partition {placed}-0, but replica set is" in ours[1]

    cli.run("partitions", "reassign", "execute", *plan)
    deadline = time.monotonic() + 60
    while cli.lines("partitions", "reassign", "list") != ["No partition reassignments found."]:
        assert time.monotonic() < deadline
    ours = cli.lines("partitions", "reassign", "verify", *plan)
    assert ours == kafka(REASSIGN, "--verify", *plan)
    assert ours[1] == f"Reassignment of partition {placed}-0 is completed."
    assert cli.lines("topics", "describe", placed) == kafka(TOPICS, "--describe", "--topic", placed)


def test_leaders_are_elected(cli, kafka, bootstrap, placed, tmp_path):
    plan = ("--reassignment-json-file", write(tmp_path / "plan.json", placed, {0: [2, 1], 1: [3, 2]}))
    cli.run("partitions", "reassign", "execute", *plan)  # only the order changes: the leaders stay
    ours = cli.lines("partitions", "elect-leaders", f"{placed}:0")
    assert ours == [f"Successfully completed leader election (PREFERRED) for partitions {placed}-0"]
    named = ("--topic", placed, "--partition", "0")
    ours = cli.lines("partitions", "elect-leaders", *named)
    assert ours == kafka(ELECT, "--election-type", "preferred", *named)
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.describe_topic(placed).partitions[0].leader == 2

    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": placed, "partition": 1}]}))
    cli.run("partitions", "elect-leaders", "--path-to-json-file", str(file))
    assert cli.objects("partitions", "elect-leaders", "--all-topic-partitions") == []
    assert "1 replica(s) could not be elected" in cli.error("partitions", "elect-leaders", "nope:0")


def test_brokers_that_are_not_there_are_refused(cli, placed, tmp_path):
    plan = write(tmp_path / "plan.json", placed, {0: [1, 9]})
    refused = cli.error("partitions", "reassign", "execute", "--reassignment-json-file", plan)
    assert "Unknown broker id 9" in refused


def test_the_admin_client_lists_and_cancels_reassignments(bootstrap, placed):
    first, second = TopicPartition(placed, 0), TopicPartition(placed, 7)
    with Admin(bootstrap_servers=bootstrap) as admin:
        outcomes = admin.alter_partition_reassignments({first: None, second: [1]})
        assert type(outcomes[first]).__name__ == "NoReassignmentInProgress"
        assert type(outcomes[second]).__name__ == "UnknownTopicOrPartition"
        assert admin.list_partition_reassignments([first]) == {}
