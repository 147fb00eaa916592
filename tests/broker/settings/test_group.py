"""What one group may set for itself."""

from __future__ import annotations

import pytest

from odradek.broker.settings.alter import Change, Operation, alter_group
from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.describe import describe_group
from odradek.broker.settings.sources import Source, Sources, Synonym
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
PAUSE = "consumer.assignment.interval.ms"


def configured(**dynamic: str) -> BrokerConfig:
    """A broker whose file has these settings."""
    static = {name.replace("_", "."): text for name, text in dynamic.items()}
    return broker_config(Sources({"log.dirs": "/unused", **static}))


def set_to(config: BrokerConfig, stored: dict[str, str], **values: str) -> dict[str, str]:
    changes = [Change(name.replace("_", "."), Operation.SET, text) for name, text in values.items()]
    return alter_group(config, stored, changes)


def test_a_group_without_settings_has_the_brokers():
    config = configured(group_consumer_session_timeout_ms="46000").group({})
    assert config.consumer_session_timeout_ms == 46_000
    assert config.consumer_heartbeat_interval_ms == 5000
    assert config.consumer_assignment_interval_ms == 1000


def test_its_own_values_count_where_it_has_some():
    config = configured().group({SESSION: "50000", PAUSE: "0"})
    assert config.consumer_session_timeout_ms == 50_000
    assert config.consumer_heartbeat_interval_ms == 5000
    assert config.consumer_assignment_interval_ms == 0


def test_a_value_that_came_to_be_out_of_bounds_counts_as_the_bound():
    config = configured().group({SESSION: "2000", HEARTBEAT: "300", PAUSE: "99999"})
    assert config.consumer_session_timeout_ms == 45_000
    assert config.consumer_heartbeat_interval_ms == 5000
    assert config.consumer_assignment_interval_ms == 15_000


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            SESSION,
            "44999",
            f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (SESSION, "60001", f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"),
        (SESSION, "0", f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        (SESSION, "soon", f"Invalid value soon for configuration {SESSION}: Not a number of type INT"),
        (PAUSE, "15001", f"{PAUSE} must be less than or equal to group.consumer.max.assignment.interval.ms"),
        (
            "consumer.session.timeout",
            "1",
            f"Unknown group config name: consumer.session.timeout; did you mean {SESSION}?",
        ),
        (
            "share.session.timeout.ms",
            "50000",
            "share.session.timeout.ms is not offered: there are no share groups",
        ),
    ],
)
def test_what_a_group_cannot_have_is_refused_in_kafkas_words(name, value, words):
    with pytest.raises(KafkaError) as refused:
        alter_group(configured(), {}, [Change(name, Operation.SET, value)])
    assert (refused.value.error_code, str(refused.value)) == (ErrorCode.INVALID_CONFIG, words)


def test_a_session_must_be_longer_than_a_heartbeat():
    config = configured(
        group_consumer_min_session_timeout_ms="1000", group_consumer_min_heartbeat_interval_ms="100"
    )
    with pytest.raises(KafkaError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
        set_to(config, {}, consumer_session_timeout_ms="5000")
    short = set_to(config, {}, consumer_session_timeout_ms="5000", consumer_heartbeat_interval_ms="4999")
    with pytest.raises(KafkaError, match=f"{SESSION} must be greater than {HEARTBEAT}"):
        set_to(config, short, consumer_session_timeout_ms="4999")


def test_what_is_deleted_is_the_brokers_again():
    stored = set_to(configured(), {}, consumer_session_timeout_ms="50000")
    assert alter_group(configured(), stored, [Change(SESSION, Operation.DELETE)]) == {}


def test_a_description_reports_whose_value_counts_and_what_is_behind_it():
    config = configured(group_consumer_session_timeout_ms="46000")
    rows = {row.name: row for row in describe_group(config, {SESSION: " 50000 "})}
    behind = "group.consumer.session.timeout.ms"
    assert (rows[SESSION].value, rows[SESSION].source) == ("50000", Source.GROUP)
    assert rows[SESSION].synonyms == (
        Synonym(SESSION, "50000", Source.GROUP),
        Synonym(behind, "46000", Source.STATIC_BROKER),
        Synonym(behind, "45000", Source.DEFAULT),
    )
    assert (rows[HEARTBEAT].value, rows[HEARTBEAT].source) == ("5000", Source.DEFAULT)
    assert rows["share.isolation.level"].synonyms == (
        Synonym("share.isolation.level", "read_uncommitted", Source.DEFAULT),
    )
