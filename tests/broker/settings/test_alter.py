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
TLS = "TLS is not offered yet: leave ssl.* out and keep listeners PLAINTEXT, on a network that you trust"
SASL = "SASL is not offered yet: leave it out and keep listeners PLAINTEXT, on a network that you trust"
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
    **{
        (name, operation, value): (ErrorCode.INVALID_CONFIG, f"{name} is not offered: {reason}")
        for reason, *changes in (
            (TLS, ("ssl.keystore.location", Operation.SET, "/elsewhere")),
            (SASL, ("sasl.enabled.mechanisms", Operation.APPEND, "PLAIN")),
        )
        for name, operation, value in changes
    },
    # Kafka opens and closes listeners while it runs.
    ("listeners", Operation.SET, "PLAINTEXT://localhost:1"): (
        ErrorCode.INVALID_REQUEST,
        "Cannot update these configs dynamically: [listeners]",
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
    return TOPIC if name in {"retention.ms", "remote.storage.enable"} else BROKER


def normalized(attempt: dict[str, Any], overrides: dict[str, str]) -> dict[str, str]:
    """As Kafka shows the values of topics: read and written again."""
    if attempt["resource_type"] == BROKER:
        return overrides
    config = BrokerConfig().topic(overrides)
    reported = {}
    for name, text in overrides.items():
        value = getattr(config, name.replace(".", "_"), text)
        reported[name] = ",".join(value) if isinstance(value, tuple) else str(value)
        reported[name] = reported[name].lower() if isinstance(value, bool) else reported[name]
    return reported


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


def test_a_password_that_is_refused_is_not_shown() -> None:
    name = "listener.name.client.ssl.key.password"

    with pytest.raises(KafkaError, match="TLS is not offered yet") as refused:
        alter_broker(Sources(), [Change(name, Operation.SET, "hunter2")], is_default=False)

    assert "hunter2" not in str(refused.value)


def test_what_kafka_stored_and_odradek_does_not_offer_stays_and_can_be_deleted() -> None:
    stored = {"ssl.client.auth": "none", "listeners": "PLAINTEXT://127.0.0.1:9093"}
    sources = Sources(dynamic_broker=stored)

    added = alter_broker(sources, [Change("max.connections", Operation.SET, "7")], is_default=False)
    deleted = alter_broker(sources, [Change("listeners", Operation.DELETE)], is_default=False)

    assert added == {**stored, "max.connections": "7"}
    assert deleted == {"ssl.client.auth": "none"}
    with pytest.raises(KafkaError, match=r"ssl\.client\.auth is not offered: TLS"):
        alter_broker(sources, [Change("ssl.client.auth", Operation.SET, "required")], is_default=False)


def test_a_listeners_own_limit_can_change() -> None:
    change = [Change("listener.name.client.max.connections", Operation.SET, "7")]

    assert alter_broker(Sources(), change, is_default=False) == {change[0].name: "7"}


def test_a_change_that_contradicts_the_file_is_refused() -> None:
    sources = Sources(static={"max.connections.per.ip.overrides": ""})

    with pytest.raises(KafkaError, match="can be set to zero only if") as refused:
        alter_broker(sources, [Change("max.connections.per.ip", Operation.SET, "0")], is_default=True)

    assert refused.value.error_code is ErrorCode.INVALID_REQUEST


def test_replacing_everything_follows_the_same_rules() -> None:
    assert check_topic(BrokerConfig(), {"retention.ms": "5"}) == {"retention.ms": "5"}
    assert check_broker(Sources(), {"log.retention.ms": "5"}, is_default=True) == {"log.retention.ms": "5"}
    with pytest.raises(
        KafkaError, match=r"Cannot update these configs dynamically: \[log.dirs, num.partitions\]"
    ):
        check_broker(Sources(), {"log.dirs": "/x", "num.partitions": "3"}, is_default=False)


def test_what_a_list_already_has_is_not_appended_again() -> None:
    changes = [Change("cleanup.policy", Operation.APPEND, "compact,delete,compact")]

    assert alter_topic(BrokerConfig(), {}, changes) == {"cleanup.policy": "delete,compact"}
