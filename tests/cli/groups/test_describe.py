from __future__ import annotations

import pytest

from client.eventually import eventually
from odradek import Consumer

OFFSET_COLUMNS = ["CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"]


def test_offsets_and_lag_of_a_group_that_is_gone(cli, left, filled):
    cli.run("produce", filled, "-p", "0", typed="more\n")
    reported = cli.run("groups", "describe", left)
    assert reported.stderr == f"\nConsumer group '{left}' has no active members.\n"
    _, titles, first, second = reported.stdout.splitlines()
    assert titles.split() == ["GROUP", "TOPIC", "PARTITION", *OFFSET_COLUMNS]
    assert first.split() == [left, filled, "0", "5", "6", "1", "-", "-", "-"]
    assert second.split() == [left, filled, "1", "1", "1", "0", "-", "-", "-"]
    assert titles.index("PARTITION") == first.index(" 0 ") + 1, "columns are as wide as what is in them"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_whoever_reads_a_partition_is_beside_it(cli, join, filled, group, protocol):
    join("reader", group_protocol=protocol)
    first, second = cli.objects("groups", "describe", group)
    assert first == {
        "group": group,
        "topic": filled,
        "partition": 0,
        "current_offset": 5,
        "log_end_offset": 5,
        "lag": 0,
        "consumer_id": first["consumer_id"],
        "host": "/127.0.0.1",
        "client_id": "reader",
    }
    assert first["consumer_id"] == second["consumer_id"]
    (verbose, _) = cli.objects("groups", "describe", group, "--verbose")
    assert verbose == {**first, "leader_epoch": 0}


def test_members_are_shown_with_what_they_have(cli, join, filled, group):
    join("reader", group_instance_id="static")
    (member,) = cli.objects("groups", "describe", group, "--members")
    assert (member["client_id"], member["group_instance_id"], member["partitions"]) == ("reader", "static", 2)
    (member,) = cli.objects("groups", "describe", group, "--members", "--verbose")
    assert member["current_assignment"] == [f"{filled}:0", f"{filled}:1"]
    assert member["target_assignment"] is None
    _, titles, line = cli.lines("groups", "describe", group, "--members", "--verbose")
    assert "GROUP-INSTANCE-ID" in titles
    assert f" {filled}:0,1 " in line


def test_members_of_the_new_protocol_have_epochs(cli, join, filled, group):
    join("reader", group_protocol="consumer")
    eventually(lambda: cli.objects("groups", "describe", group, "--state")[0]["state"] == "Stable")
    (member,) = cli.objects("groups", "describe", group, "--members", "--verbose")
    assert member["current_assignment"] == member["target_assignment"] == [f"{filled}:0", f"{filled}:1"]
    (state,) = cli.objects("groups", "describe", group, "--state", "--verbose")
    assert state["group_epoch"] == state["target_assignment_epoch"] == member["current_epoch"]
    assert (state["type"], state["assignor"]) == ("Consumer", "uniform")


def test_a_member_without_a_partition_is_among_the_members(cli, topic, make_topic):
    make_topic()
    settings = {"bootstrap_servers": cli.bootstrap, "group_id": "crowded", "heartbeat_interval_ms": 50}
    with Consumer(client_id="one", **settings) as one, Consumer(client_id="two", **settings) as two:
        one.subscribe([topic])
        two.subscribe([topic])

        def are_both_shown() -> bool:
            one.poll(0.05)
            two.poll(0.05)
            rows = cli.objects("groups", "describe", "crowded", "--members")
            return [row["partitions"] for row in rows] == [1, 0]

        eventually(are_both_shown)


def test_a_partition_without_an_offset_has_no_lag(cli, topic, make_topic):
    make_topic()
    with Consumer(bootstrap_servers=cli.bootstrap, group_id="fresh", enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])

        def has_joined() -> bool:
            consumer.poll(0.05)
            return bool(consumer.assignment())

        eventually(has_joined)
        (row,) = cli.objects("groups", "describe", "fresh")
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (None, 0, None)
    assert row["host"] == "/127.0.0.1"


def test_the_state_is_one_line(cli, left):
    (state,) = cli.objects("groups", "describe", left, "--state")
    assert state == {
        "group": left,
        "coordinator": cli.bootstrap,
        "coordinator_id": 0,
        "assignor": None,
        "state": "Empty",
        "type": "Classic",
        "members": 0,
    }
    _, titles, line = cli.lines("groups", "describe", left, "--state")
    assert titles.split() == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    assert line.split() == [left, cli.bootstrap, "(0)", "-", "Empty", "0"]


def test_all_groups_are_described_one_after_the_other(cli, left, filled):
    cli.run("groups", "reset-offsets", f"{left}-2", "--topic", filled, "--to-latest", "--execute")
    described = {row["group"] for row in cli.objects("groups", "describe", "--all-groups")}
    assert {left, f"{left}-2"} <= described
    assert {row["group"] for row in cli.objects("groups", "describe", "--group", left)} == {left}


def test_a_topic_that_is_gone_leaves_nothing_to_describe(cli, left, filled):
    cli.run("topics", "delete", filled)
    assert cli.objects("groups", "describe", left) == []


@pytest.mark.parametrize(
    ("flags", "exit_code", "words"),
    [
        ([], 2, "give groups, or --all-groups"),
        (["g", "--all-groups"], 2, "give groups, or --all-groups"),
        (["g", "--members", "--state"], 2, "exclude each other"),
        (
            ["entirely-different"],
            1,
            "there is no group 'entirely-different'; `odradek groups list` shows all",
        ),
    ],
)
def test_a_mistake_is_reported(cli, flags, exit_code, words):
    assert words in cli.error("groups", "describe", *flags, exit_code=exit_code)


def test_the_group_that_was_probably_meant_is_named(cli, left):
    assert f"did you mean {left}" in cli.error("groups", "describe", left + "s")
