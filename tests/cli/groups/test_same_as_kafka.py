"""Kafka's kafka-consumer-groups.sh and our `groups` say the same of one broker, and do the same to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from client.eventually import eventually
from compat.java_tools import run_tool
from odradek import Admin, Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("groups")]

TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CLASSIC, NEW, EMPTY = "a-group-of-the-classic-protocol", "new", "nobody-is-in-it"


@pytest.fixture(scope="module")
def groups(cli_cluster) -> Iterator[None]:
    """A classic group with a static member and an idle one, one of the new protocol, and an empty one."""
    bootstrap = cli_cluster.bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic("single")
        admin.create_topic("orders", num_partitions=3)
        with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(10):
                producer.send("orders", b"x", partition=number % 2, timestamp=1000 * (number + 1))
        admin.alter_group_offsets(
            EMPTY, {TopicPartition("orders", number): 2 * number for number in range(2)}
        )
        admin.alter_group_offsets(NEW, {TopicPartition("orders", 1): 3})
        with ExitStack() as stack:

            def member(group: str, topic: str, **settings: Any) -> Consumer[Any, Any]:
                given = {"group_id": group, "heartbeat_interval_ms": 100, **settings}
                if "group_protocol" in settings:
                    del given["heartbeat_interval_ms"]
                made = stack.enter_context(
                    Consumer(bootstrap_servers=bootstrap, enable_auto_commit=False, **given)
                )
                made.subscribe([topic])
                return made

            members = [
                member(CLASSIC, "single", client_id="one", group_instance_id="static"),
                member(CLASSIC, "single", client_id="two"),
                member(NEW, "orders", client_id="three", group_protocol="consumer"),
            ]

            def are_settled() -> bool:
                for one in members:
                    one.poll(0.01)
                described = [admin.describe_group(group) for group in (CLASSIC, NEW)]
                return [len(one.members) for one in described if one.state == "Stable"] == [2, 1] and len(
                    members[2].assignment()
                ) == 3

            eventually(are_settled)
            yield


@pytest.fixture
def kafka(cli):
    def run(*arguments: str) -> list[str]:
        done = run_tool(TOOL, *arguments, "--bootstrap-server", cli.bootstrap)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()

    return run


def test_lists_have_the_same_lines(cli, kafka):
    theirs = kafka("--list", "--state", "--type")
    ours = cli.lines("groups", "list", "--state", "--type")
    assert ours[0] == theirs[0]
    assert ours[1:] == sorted(theirs[1:])


@pytest.mark.parametrize("flags", [[], ["--members"], ["--state"]], ids=["offsets", "members", "state"])
def test_descriptions_have_the_same_lines(cli, kafka, flags):
    theirs = kafka("--describe", "--all-groups", "--verbose", *flags)
    # Both print group after group with titles above each; theirs are in the order of a hash table.
    assert sorted(cli.lines("groups", "describe", "--all-groups", "--verbose", *flags)) == sorted(theirs)


def test_a_group_in_use_is_refused_by_both(cli, kafka):
    flags = ("--all-topics", "--to-earliest", "--dry-run")
    assert "can only be reset if the group" in "".join(kafka("--reset-offsets", "--group", NEW, *flags))
    assert "is in use" in cli.error("groups", "reset-offsets", NEW, *flags)


@pytest.mark.parametrize(
    "flags",
    [["--to-offset", "9"], ["--shift-by", "1"], ["--to-datetime", "1970-01-01T00:00:05.000"]],
    ids=["offset", "shift", "datetime"],
)
def test_offsets_are_reset_to_the_same_places(cli, kafka, flags):
    scope = ("--topic", "orders:0,1", "--dry-run")
    theirs = kafka("--reset-offsets", "--group", EMPTY, *scope, *flags)
    ours = cli.lines("groups", "reset-offsets", EMPTY, *scope, *flags)
    assert sorted(ours) == sorted(theirs)


def test_what_is_deleted_is_reported_in_the_same_lines(cli, kafka):
    reset = ("--topic", "orders", "--to-latest", "--execute")
    for group in ("theirs", "ours"):
        cli.run("groups", "reset-offsets", group, *reset)
    flags = ("--topic", "orders:0,2")
    theirs = kafka("--delete-offsets", "--group", "theirs", *flags)
    assert cli.lines("groups", "delete-offsets", "ours", *flags) == [
        line.replace("theirs", "ours") for line in theirs
    ]
    theirs = kafka("--delete", "--group", "theirs")
    assert cli.lines("groups", "delete", "ours") == [line.replace("theirs", "ours") for line in theirs]
