"""Changes at run time beside what Apache Kafka 4.3.1 answered to the same requests (record_kafka.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.settings.alter import (
    Change,
    Operation,
    alter_broker,
    alter_topic,
    check_broker,
    check_topic,
)
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.sources import Sources
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

ALTERED = json.loads((Path(__file__).parents[2] / "data/configs/altered.json").read_text())
TOPIC, BROKER = 2, 4

# Faults of the resource, not of its settings: the handlers answer those.
NOT_HERE = {
    "The topic 'absent' does not exist.",
    "Default topic resources are not allowed.",
    "Unexpected broker id, expected 1, but received 2",
    "Node id must be an integer, but it is: one",
    "Unknown resource type 9",
}
# Kafka answers otherwise: key, operation and value, our code, our words.
ON_PURPOSE: dict[tuple[str, int, str | None], tuple[ErrorCode, str]] = {
    # Kafka keeps a name that nobody knows, in case a plug-in reads it.
    ("no.such.key", Operation.SET, "1"): (ErrorCode.INVALID_CONFIG, "unknown setting no.such.key"),
    # Kafka's controller stumbles over a number that it does not know.
    ("retention.ms", 9, "1"): (ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
    ("principal.builder.class", Operation.SET, "no.such.Class"): (
        ErrorCode.INVALID_CONFIG,
        "principal.builder.class is not offered: it is about Java classes, which odradek cannot load",
    ),
    ("remote.storage.enable", Operation.SET, "true"): (
        ErrorCode.INVALID_CONFIG,
        "remote.storage.enable is not offered: there is no tiered storage",
    ),
}
# What Kafka wraps its words in.
WRAPPINGS = (
    "requirement failed: ",
    "Invalid value org.apache.kafka.common.config.ConfigException: ",
    " for configuration Invalid dynamic configuration",
)


def attempts() -> list[Any]:
    named = (
        pytest.param(one, id=f"{one['resource_name']} {one['operations'][0]}")
        for one in ALTERED
        if one["error_message"] not in NOT_HERE and not str(one["error_message"]).startswith("Topic name")
    )
    return list(named)


def altered(attempt: dict[str, Any]) -> dict[str, str]:
    changes = [Change(*operation) for operation in attempt["operations"]]
    before = {name: value for name, value in attempt["before"].items() if value is not None}
    if attempt["resource_type"] == TOPIC:
        return alter_topic(BrokerConfig(), before, changes)
    if attempt["resource_name"]:
        return alter_broker(Sources(dynamic_broker=before), changes, is_default=False)
    return alter_broker(Sources(dynamic_default=before), changes, is_default=True)


def expected_error(attempt: dict[str, Any]) -> tuple[ErrorCode, str]:
    for operation in attempt["operations"]:
        if tuple(operation) in ON_PURPOSE and attempt["resource_type"] == _level_of(operation[0]):
            return ON_PURPOSE[tuple(operation)]
    message = attempt["error_message"] or ""
    for wrapping in WRAPPINGS:
        message = message.replace(wrapping, "")
    return ErrorCode(attempt["error_code"]), message


def _level_of(name: str) -> int:
    return BROKER if name in {"no.such.key", "principal.builder.class"} else TOPIC


def normalized(attempt: dict[str, Any], overrides: dict[str, str]) -> dict[str, str]:
    """As Kafka shows the values of topics: read and written again."""
    if attempt["resource_type"] == BROKER:
        return overrides
    config = BrokerConfig().topic(overrides)
    told = {}
    for name, text in overrides.items():
        value = getattr(config, name.replace(".", "_"), text)
        told[name] = ",".join(value) if isinstance(value, tuple) else str(value)
        told[name] = told[name].lower() if isinstance(value, bool) else told[name]
    return told


@pytest.mark.parametrize("attempt", attempts())
def test_a_change_ends_as_with_kafka(attempt: dict[str, Any]) -> None:
    error_code, message = expected_error(attempt)

    if error_code is ErrorCode.NONE:
        assert normalized(attempt, altered(attempt)) == attempt["after"]
    else:
        with pytest.raises(KafkaError) as refused:
            altered(attempt)
        assert (refused.value.error_code, str(refused.value)) == (error_code, message)


def test_the_list_on_purpose_names_only_attempts_that_were_recorded() -> None:
    recorded = {tuple(operation) for attempt in ALTERED for operation in attempt["operations"]}

    assert set(ON_PURPOSE) <= recorded


def test_a_password_is_not_taken_at_run_time_nor_told() -> None:
    name = "listener.name.client.ssl.key.password"

    with pytest.raises(KafkaError, match="can only be set where the broker starts") as refused:
        alter_broker(Sources(), [Change(name, Operation.SET, "hunter2")], is_default=False)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("listener.name.client.ssl.keystore.location", "/new.pem"),
        ("listeners", "PLAINTEXT://127.0.0.1:9093"),
        ("sasl.enabled.mechanisms", "PLAIN"),
    ],
)
def test_what_would_not_be_obeyed_before_a_restart_is_refused(name: str, value: str) -> None:
    change = [Change(name, Operation.SET, value)]

    with pytest.raises(KafkaError, match="take effect only where the broker starts"):
        alter_broker(Sources(), change, is_default=False)
    with pytest.raises(KafkaError, match="broker id must be specified"):
        alter_broker(Sources(), change, is_default=True)


def test_a_listeners_own_limit_can_change() -> None:
    change = [Change("listener.name.client.max.connections", Operation.SET, "7")]

    assert alter_broker(Sources(), change, is_default=False) == {change[0].name: "7"}


def test_a_change_that_contradicts_the_file_is_refused() -> None:
    sources = Sources(static={"max.connections.per.ip.overrides": ""})

    with pytest.raises(KafkaError, match="can be set to zero only if") as refused:
        alter_broker(sources, [Change("max.connections.per.ip", Operation.SET, "0")], is_default=True)

    assert refused.value.error_code is ErrorCode.INVALID_REQUEST


def test_replacing_everything_obeys_the_same_rules() -> None:
    assert check_topic(BrokerConfig(), {"retention.ms": "5"}) == {"retention.ms": "5"}
    assert check_broker(Sources(), {"log.retention.ms": "5"}, is_default=True) == {"log.retention.ms": "5"}
    with pytest.raises(
        KafkaError, match=r"Cannot update these configs dynamically: \[log.dirs, num.partitions\]"
    ):
        check_broker(Sources(), {"log.dirs": "/x", "num.partitions": "3"}, is_default=False)


def test_what_a_list_already_has_is_not_appended_again() -> None:
    changes = [Change("cleanup.policy", Operation.APPEND, "compact,delete,compact")]

    assert alter_topic(BrokerConfig(), {}, changes) == {"cleanup.policy": "delete,compact"}
