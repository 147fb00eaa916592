"""DescribeConfigs beside what Apache Kafka 4.3.1 answered for the same settings (record_kafka.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.describe import Row, describe_broker, describe_default_broker, describe_topic
from odradek.broker.settings.sources import Source, Sources

DESCRIBED = json.loads((Path(__file__).parents[2] / "data/configs/described.json").read_text())
MOMENTS = list(DESCRIBED)

# Rows that differ on purpose.
ONLY_OURS = {
    "allow.everyone.if.no.acl.found",
    "odradek.allow.unauthenticated",
    "odradek.coordination",
    "odradek.metrics.listener",
    "super.users",
    # Kafka 3.9's, for brokers that meet in ZooKeeper.
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "leader.imbalance.per.broker.percentage",
    "reserved.broker.max.id",
    "zookeeper.connect",
    "zookeeper.connection.timeout.ms",
    "zookeeper.session.timeout.ms",
}
OTHER_DEFAULT = {
    "listeners",
    "group.coordinator.rebalance.protocols",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
}
# The recorded broker is its own KRaft controller, and has a key that nobody knows.
CANNOT_BE_SET_HERE = {
    "process.roles",
    "controller.listener.names",
    "controller.quorum.voters",
    "some.unknown.key",
}
# The values of those cannot change at run time, because there are none.
READ_ONLY_HERE = {*catalog.broker_not_offered(), "listeners", "listener.security.protocol.map"}


def kafka_rows(moment: str, resource: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in DESCRIBED[moment][resource]}


def set_values(rows: dict[str, dict[str, Any]], source: Source) -> dict[str, str]:
    """What Kafka says was set by `source`; a password, which it does not tell, has any value."""
    return {
        name: "secret" if value is None else value
        for row in rows.values()
        for name, value, number in row["synonyms"]
        if number == source and name not in CANNOT_BE_SET_HERE
    }


def sources(moment: str) -> Sources:
    rows = kafka_rows(moment, "broker")
    return Sources(
        static=set_values(rows, Source.STATIC_BROKER),
        dynamic_default=set_values(rows, Source.DYNAMIC_DEFAULT_BROKER),
        dynamic_broker=set_values(rows, Source.DYNAMIC_BROKER),
    )


def as_kafka_writes(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": row.value,
        "is_read_only": row.is_read_only,
        "is_sensitive": row.is_sensitive,
        "source": row.source,
        "type": row.type_number,
        "synonyms": [list(synonym) for synonym in row.synonyms],
        "has_documentation": bool(row.documentation),
    }


def compare(ours: list[Row], kafkas: dict[str, dict[str, Any]]) -> None:
    for row in ours:
        if row.name in ONLY_OURS:
            continue
        expected = dict(kafkas[row.name])
        if row.name in READ_ONLY_HERE:
            expected["is_read_only"] = True
        if row.name in catalog.DYNAMIC_ONLY:
            expected["has_documentation"] = True  # Kafka has none for these
        if row.name in OTHER_DEFAULT:
            expected["synonyms"] = [one for one in expected["synonyms"] if one[2] != Source.DEFAULT]
            row = row._replace(synonyms=tuple(one for one in row.synonyms if one.source != Source.DEFAULT))
            if expected["source"] == Source.DEFAULT:
                expected["value"] = row.value
        assert as_kafka_writes(row) == expected


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_broker_is_described_as_kafka_describes_itself(moment: str) -> None:
    kafkas = kafka_rows(moment, "broker")

    ours = [row for row in describe_broker(sources(moment)) if row.name not in CANNOT_BE_SET_HERE]

    assert {row.name for row in ours} ^ set(kafkas) == ONLY_OURS | CANNOT_BE_SET_HERE
    compare(ours, kafkas)


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_defaults_of_a_cluster_are_described_as_kafka_does(moment: str) -> None:
    kafkas = kafka_rows(moment, "default broker")

    ours = describe_default_broker(sources(moment))

    assert {row.name for row in ours} == set(kafkas)
    compare(ours, kafkas)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("topic", ["topic bare", "topic overridden"])
def test_a_topic_is_described_as_kafka_describes_it(moment: str, topic: str) -> None:
    kafkas = kafka_rows(moment, topic)
    overrides = set_values(kafkas, Source.TOPIC)

    ours = describe_topic(BrokerConfig(sources=sources(moment)), overrides)

    assert {row.name for row in ours} == set(kafkas)
    compare(ours, kafkas)


def test_a_password_is_never_reported() -> None:
    reported = describe_broker(Sources(static={"ssl.keystore.password": "hunter2", "unknown.key": "hunter2"}))

    assert "hunter2" not in repr(reported)
