"""A throttled reassignment on brokers of ours, by our command line."""

from __future__ import annotations

import json
import time

import pytest

from cli.conftest import Cli
from odradek import Admin, Producer
from odradek.client.admin.topics import NewTopic
from odradek.testing import Cluster

pytestmark = pytest.mark.slow


def test_a_throttled_reassignment_takes_its_time_and_ends(tmp_path):
    with Cluster(brokers=3) as cluster:
        cli = Cli(cluster.bootstrap)
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("a", assignments={0: [0, 1]})])
        with Producer(bootstrap_servers=cluster.bootstrap, compression_type="none") as producer:
            for _ in range(400):
                producer.send("a", bytes(10_000))
        file = tmp_path / "plan.json"
        rows = [{"topic": "a", "partition": 0, "replicas": [1, 2]}]
        file.write_text(json.dumps({"version": 1, "partitions": rows}))
        plan = ("--reassignment-json-file", str(file))

        began = time.monotonic()
        cli.run("partitions", "reassign", "execute", *plan, "--throttle", "1000000")
        deadline = began + 90
        while cli.lines("partitions", "reassign", "list") != ["No partition reassignments found."]:
            assert time.monotonic() < deadline
            time.sleep(0.1)

        # 4 MB; the last fetch is not waited for.
        assert time.monotonic() - began > 2
        lines = cli.lines("partitions", "reassign", "verify", *plan)
        assert lines[1] == "Reassignment of partition a-0 is completed."
        (described,) = cli.objects("topics", "describe", "a")
        assert described["configs"] == {}
        assert sorted(described["partitions"][0]["isr"]) == [1, 2]
        assert described["partitions"][0]["replicas"] == [1, 2]


def test_cancelling_a_plan_leaves_alone_what_another_plan_moves(tmp_path):
    with Cluster(brokers=3) as cluster:
        cli = Cli(cluster.bootstrap)
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic("a", assignments={0: [0], 1: [0]})])
        with Producer(bootstrap_servers=cluster.bootstrap, compression_type="none") as producer:
            for number in range(400):
                producer.send("a", bytes(10_000), partition=number % 2)
        mine = plan_file(tmp_path / "mine.json", {0: [0, 1], 1: [0, 1]})
        other = plan_file(tmp_path / "other.json", {1: [0, 2]})
        cli.run("partitions", "reassign", "execute", *mine, "--throttle", "1")
        cli.run("partitions", "reassign", "execute", *other, "--additional", "--throttle", "1")

        lines = cli.lines("partitions", "reassign", "cancel", *mine)
        assert lines[0] == "Successfully cancelled partition reassignment for: a-0"
        assert "a-1 is being reassigned to 0,2, not to 0,1 as the plan says: left as it is." in lines
        assert not any("throttle" in line for line in lines)
        (*_, left) = cli.lines("partitions", "reassign", "list")
        assert left.startswith("a-1: replicas: 0,2.")
        lines = cli.lines("partitions", "reassign", "cancel", *other)
        assert lines[0] == "Successfully cancelled partition reassignment for: a-1"
        assert any("Clearing broker-level throttles" in line for line in lines)


def plan_file(path, replicas):
    """The flag for a plan that is written there."""
    rows = [{"topic": "a", "partition": number, "replicas": ids} for number, ids in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": rows}))
    return ("--reassignment-json-file", str(path))
