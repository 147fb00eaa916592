"""The configuration as the rooms see it, and settings that do not go together."""

from __future__ import annotations

import pytest

from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.sources import Sources
from odradek.common.errors import ConfigError


def config(**settings: str) -> BrokerConfig:
    return broker_config(Sources({key.replace("_", "."): text for key, text in settings.items()}))


def test_a_setting_is_a_typed_field() -> None:
    made = config(socket_request_max_bytes="1000", group_consumer_assignors="range, uniform")

    assert made.socket_request_max_bytes == 1000
    assert made.group_consumer_assignors == ("range", "uniform")
    assert made.values["socket.request.max.bytes"] == 1000


def test_settings_that_the_log_room_declares_reach_it() -> None:
    made = config(log_cleaner_threads="2", num_recovery_threads_per_data_dir="5")

    assert made.cleaner.log_cleaner_threads == 2
    assert made.log_manager.num_recovery_threads_per_data_dir == 5


def test_it_is_known_what_somebody_set() -> None:
    made = config(offsets_topic_replication_factor="3")

    assert made.is_explicit("offsets.topic.replication.factor")
    assert not made.is_explicit("transaction.state.log.replication.factor")


def test_addresses_may_have_a_limit_of_their_own() -> None:
    made = config(max_connections_per_ip_overrides="127.0.0.1:5, [::1]:7,host:0")

    assert made.connection_limits == {"127.0.0.1": 5, "::1": 7, "host": 0}


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({"max_connections_per_ip": "0"}, "can be set to zero only if"),
        ({"max_connections_per_ip_overrides": "host"}, "host is not host:count"),
        ({"log_dirs": ""}, "log.dirs is empty: name a directory, or leave the setting out"),
        ({"log_dirs": " , ", "log_dir": "/data"}, "log.dirs is empty"),
        ({"log_dir": ""}, "log.dir is empty"),
        ({"odradek_metrics_listener": "127.0.0.1:65536"}, "with a port of at most 65535"),
        ({"log_roll_ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log_roll_jitter_ms": "-1"}, "log.roll.jitter.ms must be"),
        ({"log_retention_ms": "0"}, "log.retention.ms must be unlimited"),
        ({"log_retention_hours": "0"}, "log.retention.hours must be unlimited"),
        ({"log_cleaner_dedupe_buffer_size": "1024"}, "log.cleaner.dedupe.buffer.size"),
        ({"log_cleaner_min_compaction_lag_ms": "2", "log_cleaner_max_compaction_lag_ms": "1"}, "conflict"),
        ({"group_consumer_session_timeout_ms": "1000"}, "must be at least group.consumer.min.session"),
        ({"group_consumer_heartbeat_interval_ms": "16000"}, "group.consumer.max.heartbeat.interval.ms"),
        ({"group_coordinator_rebalance_protocols": "consumer"}, "classic cannot be left out"),
        ({"group_coordinator_rebalance_protocols": "classic,share"}, "must be one of: classic, consumer"),
        ({"offsets_topic_compression_codec": "9"}, "there is no such codec"),
        ({"broker_id": "-2"}, "must be at least 0"),
        (
            {"broker_id_generation_enable": "false", "zookeeper_connect": "here:2181"},
            r"broker.id is needed where broker.id.generation.enable=false",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, str], reported: str) -> None:
    with pytest.raises(ConfigError, match=reported):
        config(**settings)


def test_a_configuration_takes_no_name_that_it_has_not() -> None:
    with pytest.raises(TypeError, match="num_oi_threads"):
        BrokerConfig(num_oi_threads=3)
