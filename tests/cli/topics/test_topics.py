from __future__ import annotations

import re

import pytest


def test_a_topic_is_created_described_grown_and_deleted(cli, topic):
    assert cli.lines("topics", "create", topic, "--partitions", "2", "--config", "retention.ms=1000") == [
        f"Created topic {topic}."
    ]
    assert topic in cli.lines("topics", "list")

    head, first, second = cli.lines("topics", "describe", topic)
    assert re.fullmatch(
        rf"Topic: {topic}\tTopicId: [\w-]{{22}}\tPartitionCount: 2\tReplicationFactor: 1\t"
        r"Configs: retention\.ms=1000",
        head,
    )
    assert first == f"\tTopic: {topic}\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr: "
    assert second.startswith(f"\tTopic: {topic}\tPartition: 1\t")

    assert cli.lines("topics", "alter", topic, "--partitions", "3") == [f"Topic {topic} has 3 partitions."]
    (described,) = cli.objects("topics", "describe", topic)
    assert described["partition_count"] == len(described["partitions"]) == 3
    assert described["configs"] == {"retention.ms": "1000"}

    assert cli.lines("topics", "delete", topic) == [f"Deleted topic {topic}."]
    assert topic not in cli.lines("topics", "list")


def test_topics_may_be_named_as_for_kafkas_tools(cli, topic):
    cli.run("topics", "create", "--topic", topic)
    assert cli.lines("topics", "describe", "--topic", topic)[0].startswith(f"Topic: {topic}\t")


def test_what_is_there_already_is_an_error_unless_that_is_fine(cli, topic, make_topic):
    make_topic()
    assert cli.error("topics", "create", topic) == f"Error: Topic '{topic}' already exists.\n"
    assert cli.lines("topics", "create", topic, "--if-not-exists") == []


def test_what_is_not_there_is_an_error_with_the_nearest_name_unless_that_is_fine(cli, topic, make_topic):
    make_topic()
    misspelt = topic.replace("nearest", "naerest")
    for verb in (["describe"], ["delete"], ["alter", "--partitions", "2"]):
        reported = cli.error("topics", *verb, misspelt)
        assert reported.startswith(f"Error: there is no topic {misspelt!r}; did you mean {topic}")
        assert cli.lines("topics", *verb, misspelt, "--if-exists") == []
    assert "`odradek topics list` shows all" in cli.error("topics", "describe", "zzzzzzzzzz")


def test_a_regular_expression_needs_its_flag_and_means_all_topics_that_it_matches(cli, topic):
    pattern = f"{topic}-.*"
    cli.run("topics", "create", f"{topic}-1", f"{topic}-2")
    assert cli.lines("topics", "list", pattern) == []
    assert cli.lines("topics", "list", "--regex", pattern) == [f"{topic}-1", f"{topic}-2"]
    assert "--regex takes it as a regular expression" in cli.error("topics", "delete", pattern)
    cli.run("topics", "delete", "--regex", pattern)
    assert cli.lines("topics", "list", "--regex", pattern) == []


def test_a_name_is_a_name_whatever_it_would_match(cli, topic):
    named, other = f"{topic}.b", f"{topic}xb"
    cli.run("topics", "create", named, other)
    cli.run("topics", "delete", named)

    for verb in (["delete"], ["describe"], ["alter", "--partitions", "2"]):
        assert f"there is no topic {named!r}" in cli.error("topics", *verb, named)
    assert f"there is no topic {named!r}" in cli.error("offsets", "get", named)
    assert "no partition matches" in cli.error("offsets", "get", "--topic-partitions", f"{named}:0")
    assert cli.lines("topics", "list", f"{named},{other}") == [other]


def test_a_topic_that_cannot_grow_says_why(cli, topic, make_topic):
    make_topic("--partitions", "3")
    assert "2 would not be an increase" in cli.error("topics", "alter", topic, "--partitions", "2")


def test_validate_only_makes_nothing(cli, topic):
    assert cli.lines("topics", "create", topic, "--validate-only") == [f"Topic {topic} could be made."]
    assert topic not in cli.lines("topics", "list")


def test_replicas_are_placed_by_hand(cli, topic):
    cli.run("topics", "create", topic, "--replica-assignment", "0,0")
    assert len(cli.lines("topics", "describe", topic)) == 3


def test_filters_show_only_the_partitions_they_name(cli, topic, make_topic):
    make_topic("--config", "min.insync.replicas=1")
    assert cli.lines("topics", "describe", topic, "--under-replicated-partitions") == []
    assert cli.lines("topics", "describe", topic, "--unavailable-partitions") == []
    assert cli.lines("topics", "describe", topic, "--under-min-isr-partitions") == []
    (line,) = cli.lines("topics", "describe", topic, "--at-min-isr-partitions")
    assert line.startswith(f"\tTopic: {topic}\tPartition: 0\t")
    (line,) = cli.lines("topics", "describe", topic, "--topics-with-overrides")
    assert line.endswith("Configs: min.insync.replicas=1")


def test_people_get_a_table(cli, topic, make_topic):
    make_topic()
    head, row = cli.lines("topics", "describe", topic, "-o", "table")
    assert head.split() == ["topic", "partition", "leader", "replicas", "isr", "osr", "offline", "configs"]
    assert row.split()[:5] == [topic[: len(row.split()[0])], "0", "0", "0", "0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["create"], "Missing argument TOPIC"),
        (["create", "x", "--config", "retention.ms"], "--config 'retention.ms' is not NAME=VALUE"),
        (["create", "x", "--partitions", "0"], "0 is not in the range x>=1"),
        (["create", "x", "--partitions", "1", "--replica-assignment", "0"], "leave out --partitions"),
        (["create", "x", "--replica-assignment", "0:0"], "names a broker twice for partition 0"),
        (["create", "x", "--replica-assignment", "0:1,0"], "all need as many"),
        (["create", "x", "--replica-assignment", "a"], "is not like 0:1,1:2"),
        (["alter", "x"], "Missing option '--partitions'"),
        (["alter", "x", "--partitions", "2", "--replica-assignment", "0"], "places 1 partitions, not 2"),
        (["describe", "--unavailable-partitions", "--topics-with-overrides"], "exclude each other"),
        (["describe", "--regex", "or(ders"], "'or(ders' is not a regular expression"),
    ],
)
def test_a_mistake_is_reported_with_exit_code_2(cli, arguments, words):
    assert words in cli.error("topics", *arguments, exit_code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a/b"], "a/b"),
        (["fine", "--replication-factor", "4"], "Replication factor: 4 larger than available brokers: 1."),
        (["fine", "--config", "retention.mss=1"], "did you mean retention.ms"),
    ],
)
def test_what_the_broker_refuses_is_reported_with_exit_code_1(cli, arguments, words):
    assert words in cli.error("topics", "create", *arguments)
