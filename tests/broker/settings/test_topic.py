"""What a topic gets: its own values, or the broker's, whatever unit they are in."""

from __future__ import annotations

import pytest

from odradek.broker.settings.broker_config import broker_config
from odradek.broker.settings.sources import Sources, effective
from odradek.broker.settings.topic import TOPIC_SYNONYMS, topic_config
from odradek.common.errors import ConfigError
from odradek.log.config import LogConfig

HOUR_MS = 3_600_000


def retention_ms(**settings: str) -> int:
    return topic_config(
        effective(Sources({key.replace("_", "."): text for key, text in settings.items()})), {}
    ).retention_ms


def test_without_any_value_a_topic_has_the_defaults_of_the_log() -> None:
    assert topic_config(effective(Sources()), {}) == LogConfig()


def test_finer_units_beat_coarser_ones() -> None:
    assert retention_ms(log_retention_hours="2") == 2 * HOUR_MS
    assert retention_ms(log_retention_hours="2", log_retention_minutes="30") == HOUR_MS // 2
    assert retention_ms(log_retention_hours="2", log_retention_minutes="30", log_retention_ms="7") == 7
    assert retention_ms(log_retention_hours="-5") == -1


@pytest.mark.parametrize(
    ("settings", "field", "expected"),
    [
        ({"log.roll.hours": "2"}, "segment_ms", 2 * HOUR_MS),
        ({"log.roll.hours": "2", "log.roll.ms": "9"}, "segment_ms", 9),
        ({"log.roll.jitter.hours": "1"}, "segment_jitter_ms", HOUR_MS),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "9"}, "segment_jitter_ms", 9),
        ({"log.flush.scheduler.interval.ms": "5"}, "flush_ms", 5),
        ({"log.flush.scheduler.interval.ms": "5", "log.flush.interval.ms": "3"}, "flush_ms", 3),
        ({"log.segment.bytes": "2000000"}, "segment_bytes", 2_000_000),
        ({"message.max.bytes": "5"}, "max_message_bytes", 5),
        ({"log.cleanup.policy": "compact,delete"}, "cleanup_policy", ("compact", "delete")),
        ({"log.index.size.max.bytes": "8"}, "segment_index_bytes", 8),
    ],
)
def test_the_brokers_value_stands_behind_the_topics(
    settings: dict[str, str], field: str, expected: object
) -> None:
    assert getattr(topic_config(effective(Sources(settings)), {}), field) == expected


def test_every_setting_of_a_topic_but_three_has_a_brokers_setting_behind_it() -> None:
    from odradek.broker.settings.catalog import TOPIC

    assert set(TOPIC) - set(TOPIC_SYNONYMS) == {
        "follower.replication.throttled.replicas",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
    }


def test_the_topics_own_value_beats_the_brokers() -> None:
    config = topic_config(effective(Sources({"log.retention.ms": "5"})), {"retention.ms": "9"})

    assert config.retention_ms == 9


def test_a_dynamic_value_beats_the_file_whatever_its_unit() -> None:
    config = broker_config(
        Sources(
            static={"log.retention.minutes": "1", "message.max.bytes": "1"},
            dynamic_default={"log.retention.ms": "70", "message.max.bytes": "2"},
            dynamic_broker={"message.max.bytes": "3"},
        )
    )

    assert config.topic({}).retention_ms == 70
    assert config.message_max_bytes == 3


@pytest.mark.parametrize(
    ("overrides", "reported"),
    [
        ({"no.such.key": "1"}, "Unknown topic config name: no.such.key"),
        ({"retention.ms": "soon"}, "Not a number of type LONG"),
        ({"segment.bytes": "1"}, "Value must be at least 1048576"),
        ({"remote.storage.enable": "true"}, "there is no tiered storage"),
        ({"max.compaction.lag.ms": "1", "min.compaction.lag.ms": "2"}, "conflict topic config setting"),
    ],
)
def test_what_a_topic_cannot_have_is_refused(overrides: dict[str, str], reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        topic_config(effective(Sources()), overrides)


def test_a_topic_may_say_no_to_what_is_not_offered() -> None:
    assert topic_config(effective(Sources()), {"remote.storage.enable": "false"}) == LogConfig()
