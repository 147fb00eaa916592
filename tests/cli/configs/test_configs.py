from __future__ import annotations

import pytest


def test_settings_of_a_topic_are_shown_and_changed(cli, topic, make_topic):
    make_topic()
    assert cli.lines("configs", "describe", "--topic", topic) == [f"Dynamic configs for topic {topic} are:"]
    added = "cleanup.policy=[compact,delete],retention.ms=5"
    assert cli.lines("configs", "alter", "--topic", topic, "--add-config", added) == [
        f"Completed updating config for topic {topic}."
    ]
    assert cli.lines("configs", "describe", "--topic", topic) == [
        f"Dynamic configs for topic {topic} are:",
        "  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:"
        "cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
        "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}",
    ]
    cli.run("configs", "alter", "--topic", topic, "--delete-config", "retention.ms,cleanup.policy")
    assert cli.objects("configs", "describe", "--topic", topic) == []


def test_all_settings_are_shown_on_demand(cli, topic, make_topic):
    make_topic()
    head, *lines = cli.lines("configs", "describe", "--topic", topic, "--all")
    assert head == f"All configs for topic {topic} are:"
    assert (
        "  segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}"
        in lines
    )


def test_kafkas_own_flags_name_the_same_things(cli, topic, make_topic):
    make_topic("--config", "retention.ms=7")
    by_type = cli.lines("configs", "describe", "--entity-type", "topics", "--entity-name", topic)
    assert by_type == cli.lines("configs", "describe", "--topic", topic)


def test_the_default_of_all_brokers_is_changed(cli):
    done = "Completed updating default config for brokers in the cluster."
    try:
        add = ("--add-config", "log.retention.ms=7000")
        assert cli.lines("configs", "alter", "--broker-defaults", *add) == [done]
        default = cli.lines("configs", "describe", "--entity-type", "brokers", "--entity-default")
        assert default == [
            "Default configs for brokers in the cluster are:",
            "  log.retention.ms=7000 sensitive=false "
            "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7000}",
        ]
        (of_broker,) = cli.objects("configs", "describe", "--broker", "0")
        assert (of_broker["name"], of_broker["source"]) == (
            "log.retention.ms",
            "DYNAMIC_DEFAULT_BROKER_CONFIG",
        )
    finally:
        cli.run("configs", "alter", "--broker-defaults", "--delete-config", "log.retention.ms")


def test_validate_only_changes_nothing(cli, topic, make_topic):
    make_topic()
    change = ("--add-config", "retention.ms=7", "--validate-only")
    assert cli.lines("configs", "alter", "--topic", topic, *change) == [
        f"Could update config for topic {topic}."
    ]
    assert cli.objects("configs", "describe", "--topic", topic) == []


def test_documents_need_no_broker():
    from cli.conftest import Cli

    nowhere = Cli("127.0.0.1:1")
    name, facts, words = nowhere.lines("configs", "docs", "segment.bytes", "--topics")
    assert (name, facts) == (
        "segment.bytes",
        "    topic setting, int, default 1073741824, valid [1048576,...]",
    )
    assert words.startswith("    ")
    rows = nowhere.objects("configs", "docs", "retention")
    assert {"delete.retention.ms", "log.retention.ms"} <= {row["name"] for row in rows}
    assert "did you mean" in nowhere.error("configs", "docs", "log.retenshun.ms")
    assert len(nowhere.lines("configs", "docs")) > 300


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["describe"], "no entity given"),
        (["describe", "--topic", "a", "--broker", "0"], "one topic, broker or group at a time"),
        (["describe", "--entity-name", "a"], "need --entity-type"),
        (["describe", "--entity-type", "topics"], "needs --entity-name"),
        (["describe", "--entity-type", "topics", "--entity-default"], "is for brokers"),
        (["describe", "--broker", "zero"], "'zero' is not a number"),
        (["alter", "--topic", "a"], "nothing to change"),
        (["alter", "--topic", "a", "--add-config", "retention.ms"], "is not NAME=VALUE"),
        (["alter", "--topic", "a", "--add-config", "a=1", "--delete-config", "a"], "both set and deleted: a"),
    ],
)
def test_a_mistake_is_reported_with_exit_code_2(cli, arguments, words):
    assert words in cli.error("configs", *arguments, exit_code=2)


def test_what_is_not_there_is_reported(cli, topic, make_topic):
    make_topic()
    assert "the cluster has 0" in cli.error("configs", "describe", "--broker", "7")
    assert f"did you mean {topic}?" in cli.error("configs", "describe", "--topic", topic + "x")
    typo = cli.error("configs", "alter", "--topic", topic, "--add-config", "retentoin.ms=1")
    assert "did you mean retention.ms?" in typo


def test_settings_of_a_group_are_shown_and_changed(cli):
    by_type = ("--entity-type", "groups", "--entity-name", "billing")
    assert cli.lines("configs", "describe", "--group", "billing") == [
        "Dynamic configs for group billing are:"
    ]
    added = "consumer.session.timeout.ms=50000"
    assert cli.lines("configs", "alter", *by_type, "--add-config", added) == [
        "Completed updating config for group billing."
    ]
    assert cli.lines("configs", "describe", "--group", "billing") == [
        "Dynamic configs for group billing are:",
        "  consumer.session.timeout.ms=50000 sensitive=false synonyms={GROUP_CONFIG:"
        "consumer.session.timeout.ms=50000, DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}",
    ]
    reported = cli.error(
        "configs", "alter", "--group", "billing", "--add-config", "consumer.session.timeout.ms=1"
    )
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in reported
    cli.run("configs", "alter", *by_type, "--delete-config", "consumer.session.timeout.ms")
    assert cli.objects("configs", "describe", "--group", "billing") == []


def test_settings_of_groups_are_explained(cli):
    assert {row["name"] for row in cli.objects("configs", "docs", "--groups")} == {
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.assignment.interval.ms",
    }
