"""Every name of Kafka is known, with its type, default and bounds; kafka-*.txt are Kafka's own tables."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from odradek.broker.settings import catalog
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.common.config import Kind, Setting

DATA = Path(__file__).parents[2] / "data/configs"
TYPES = {
    Kind.BOOLEAN: bool,
    Kind.DOUBLE: float,
    Kind.INT: int,
    Kind.LIST: tuple[str, ...],
    Kind.LONG: int,
    Kind.PASSWORD: str,
    Kind.SHORT: int,
    Kind.STRING: str,
}
# Defaults and bounds that differ on purpose, each with the line that says so.
OTHER_DEFAULT = {
    "listeners": "listeners without authentication stay on this machine",
    "group.coordinator.rebalance.protocols": "neither share nor streams groups",
    "socket.receive.buffer.bytes": "ADR 6: Kafka's has a large request come in pieces, each with a waking",
    "socket.send.buffer.bytes": "ADR 6: Kafka's makes five calls of what the system's sends by one",
}
OTHER_BOUNDS = {
    "authorizer.class.name": "only Kafka's own authorizers mean something here",
    "replica.selector.class": "only Kafka's own selectors mean something here",
    "group.coordinator.rebalance.protocols": "neither share nor streams groups",
    "internal.segment.bytes": "a segment has room for something",
    "inter.broker.protocol.version": "any, for it has no effect",
    "log.message.format.version": "any, for it has no effect",
    "message.format.version": "any, for it has no effect",
}
OWN = {
    "allow.everyone.if.no.acl.found",
    "odradek.allow.unauthenticated",
    "odradek.coordination",
    "odradek.metrics.listener",
    "super.users",
}
# Beside Kafka's own tables: what Kafka knows only as dynamic values, and a plan of ours.
OWN_NOT_OFFERED = {"odradek.durable"}


def kafka_rows(name: str) -> list[tuple[str, str, str, str]]:
    """Name, type, default and bounds of a table."""
    lines = (DATA / name).read_text().splitlines()
    rows = []
    for line in lines:
        if line and not line.startswith("#"):
            key, kind, rest = line.split(None, 2)
            cells = re.split(r" {2,}|(?<=[^,]) (?=non-|\[|\()", rest, maxsplit=1)
            rows.append((key, kind, cells[0].strip(), cells[1].strip() if len(cells) > 1 else ""))
    return rows


def ours(key: str, level: str) -> Setting:
    offered = catalog.BROKER if level == "broker" else catalog.TOPIC
    not_offered = catalog.broker_not_offered() if level == "broker" else catalog.topic_not_offered()
    assert (key in offered) != (key in not_offered), key
    return offered[key] if key in offered else not_offered[key].setting


def printed_default(setting: Setting) -> str:
    if isinstance(setting.default, tuple):
        return f"[{', '.join(setting.default)}]"
    text = setting.print(setting.default)
    return {None: "null", "": '""'}.get(text, str(text))


@pytest.mark.parametrize("level", ["broker", "topic"])
def test_every_setting_of_kafka_is_known_with_its_type_default_and_bounds(level: str) -> None:
    for key, kind, default, bounds in kafka_rows(f"kafka-{level}.txt"):
        setting = ours(key, level)

        assert setting.kind.name.lower() == kind, key
        if key not in OTHER_DEFAULT:
            assert printed_default(setting) == default.removeprefix("class ").replace("(required)", "null"), (
                key
            )
        if key not in OTHER_BOUNDS and bounds != "non-null string":
            assert setting.valid.description == bounds, key


def test_only_a_few_settings_are_not_kafkas() -> None:
    known = {key for key, *_ in kafka_rows("kafka-broker.txt")}

    assert set(catalog.BROKER) - known == OWN
    assert set(catalog.broker_not_offered()) - known == OWN_NOT_OFFERED


def test_fields_have_the_name_and_type_of_their_setting() -> None:
    hints = get_type_hints(BrokerConfig)

    for field in fields(BrokerConfig):
        if "setting" in field.metadata:
            setting = field.metadata["setting"]
            expected = TYPES[setting.kind] if setting.default is not None else TYPES[setting.kind] | None
            assert field.name == setting.key.replace(".", "_")
            assert hints[field.name] == expected, field.name


def test_every_setting_is_explained_in_one_sentence() -> None:
    for setting in (*catalog.BROKER.values(), *catalog.TOPIC.values()):
        assert re.fullmatch(r"[A-Za-z0-9].*\.", setting.doc), setting.key
        assert ". " not in setting.doc, setting.key


def test_every_default_is_a_value_that_could_be_set() -> None:
    for setting in (*catalog.BROKER.values(), *catalog.TOPIC.values()):
        text = setting.print(setting.default)
        assert text is None or setting.parse(text) == setting.default, setting.key


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("log.retension.ms", "log.retention.ms"),
        ("listner", "listeners"),
        ("socket.request.max.byte", "socket.request.max.bytes"),
        ("xyzzy", None),
    ],
)
def test_the_nearest_name_is_the_one_that_was_probably_meant(misspelt: str, meant: str | None) -> None:
    assert catalog.nearest(misspelt, catalog.BROKER) == meant


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.client.max.connections", "max.connections"),
        ("listener.name.client.ssl.keystore.location", "ssl.keystore.location"),
        ("listener.name.client.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.security.protocol.map", "listener.security.protocol.map"),
    ],
)
def test_a_listener_and_a_mechanism_may_stand_before_a_name(name: str, base: str) -> None:
    assert catalog.base_name(name) == base
    assert catalog.broker_setting(name) is catalog.broker_setting(base) is not None


def test_what_all_listeners_share_cannot_be_set_for_one() -> None:
    assert catalog.broker_setting("listener.name.client.log.dirs") is None
