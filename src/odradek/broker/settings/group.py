"""The settings of one group: its own values within the bounds that the broker sets, else the broker's.

of a group        consumer.session.timeout.ms
of the broker     group.consumer.session.timeout.ms
its bounds        group.consumer.min.session.timeout.ms, group.consumer.max.session.timeout.ms
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.settings import catalog
from odradek.broker.settings.declarations.groups import GroupConfig
from odradek.common.config import Value
from odradek.common.errors import ConfigError

_SESSION, _HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def group_config(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> GroupConfig:
    """What counts for a group. A value that is out of bounds since they were changed counts as the bound."""
    own = parse_group_overrides(overrides)
    values: dict[str, int] = {}
    for name in catalog.GROUP:
        value = _number(broker_values, broker_name(name))
        if name in own:
            lowest, highest = (_number(broker_values, bound) for bound in bounds_of(name))
            value = min(max(own[name], lowest), highest)
        values[name.replace(".", "_")] = value
    return GroupConfig(**values)


def check_group_overrides(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> None:
    """ConfigError, in Kafka's words, for what a group cannot have."""
    own = parse_group_overrides(overrides)
    for name, value in own.items():
        lowest, highest = bounds_of(name)
        if value < _number(broker_values, lowest):
            raise ConfigError(f"{name} must be greater than or equal to {lowest}")
        if value > _number(broker_values, highest):
            raise ConfigError(f"{name} must be less than or equal to {highest}")
    session_ms, heartbeat_ms = (
        own.get(name, _number(broker_values, broker_name(name))) for name in (_SESSION, _HEARTBEAT)
    )
    if session_ms <= heartbeat_ms:
        raise ConfigError(f"{_SESSION} must be greater than {_HEARTBEAT}")


def parse_group_overrides(overrides: Mapping[str, str]) -> dict[str, int]:
    """What was set for a group, by name; without what may be set but has no effect."""
    values: dict[str, int] = {}
    for name, text in overrides.items():
        if name in catalog.group_not_offered():
            catalog.group_not_offered()[name].check(text)
        elif name in catalog.GROUP:
            value = catalog.GROUP[name].parse(text)
            assert isinstance(value, int)
            values[name] = value
        else:
            meant = catalog.nearest(name, catalog.GROUP)
            advice = f"; did you mean {meant}?" if meant else ""
            raise ConfigError(f"Unknown group config name: {name}{advice}")
    return values


def broker_name(name: str) -> str:
    """The broker's setting that counts for groups without a value of their own."""
    return f"group.{name}"


def bounds_of(name: str) -> tuple[str, str]:
    """The broker's settings that say what a group may set at least and at most."""
    protocol, _, rest = name.partition(".")
    return f"group.{protocol}.min.{rest}", f"group.{protocol}.max.{rest}"


def _number(broker_values: Mapping[str, Value], name: str) -> int:
    value = broker_values[name]
    assert isinstance(value, int)
    return value
