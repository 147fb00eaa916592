"""Every setting of brokers, topics and groups, offered or not, and the nearest name to a misspelt one.

`listener.name.<listener>.` in front of a name sets it for one listener; a SASL mechanism may come between,
as in `listener.name.client.scram-sha-256.sasl.jaas.config`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from odradek.broker.settings.declarations.general import GeneralSettings
from odradek.broker.settings.declarations.groups import GroupConfig, GroupSettings
from odradek.broker.settings.declarations.log import LogSettings
from odradek.broker.settings.declarations.network import NetworkSettings
from odradek.broker.settings.declarations.replication import ReplicationSettings
from odradek.broker.settings.declarations.security import SecuritySettings
from odradek.broker.settings.declarations.transactions import TransactionSettings
from odradek.broker.settings.not_offered import NotOffered, read_table
from odradek.common.config import LONG_MAX, Kind, Setting, UpdateMode, at_least, settings_of
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.config import LogConfig
from odradek.log.directories.manager_config import LogManagerConfig

THEMES: dict[str, tuple[type[Any], ...]] = {
    "General": (GeneralSettings,),
    "Network": (NetworkSettings,),
    "Log": (LogSettings, LogManagerConfig, CleanerConfig),
    "Replication": (ReplicationSettings,),
    "Groups": (GroupSettings,),
    "Transactions": (TransactionSettings,),
    "Security": (SecuritySettings,),
}


def _rate(key: str, doc: str) -> Setting:
    return Setting(key, Kind.LONG, LONG_MAX, doc, at_least(0), UpdateMode.CLUSTER_WIDE)


# Kafka knows these only as dynamic values: they are in no file, and listed only where they were set.
DYNAMIC_ONLY: dict[str, Setting] = {
    one.key: one
    for one in (
        _rate(
            "replica.alter.log.dirs.io.max.bytes.per.second",
            "Bytes per second that moves between the log directories of a broker may copy.",
        ),
        _rate(
            "leader.replication.throttled.rate",
            "Bytes per second that this broker sends to replicas out of sync, of all partitions that are "
            "listed in leader.replication.throttled.replicas of their topics.",
        ),
        _rate(
            "follower.replication.throttled.rate",
            "Bytes per second that this broker's followers may fetch of all partitions that are listed in "
            "follower.replication.throttled.replicas of their topics, and are behind.",
        ),
    )
}
BROKER: dict[str, Setting] = {
    key: one for groups in THEMES.values() for group in groups for key, one in settings_of(group).items()
}
TOPIC: dict[str, Setting] = settings_of(LogConfig)
GROUP: dict[str, Setting] = settings_of(GroupConfig)

# What a client of one listener meets, and only that, can differ between listeners.
_PER_LISTENER = (
    "ssl.",
    "sasl.",
    "connections.max.reauth.ms",
    "max.connections",
    "max.connection.creation.rate",
)
_PER_MECHANISM = ("sasl.jaas.config", "connections.max.reauth.ms")
_LISTENER = re.compile(r"listener\.name\.([^.]+)\.(.+)")


@cache
def broker_not_offered() -> dict[str, NotOffered]:
    """What Kafka's brokers know and ours do not."""
    return read_table("not_offered.txt")


@cache
def topic_not_offered() -> dict[str, NotOffered]:
    """The same of topics."""
    return read_table("not_offered_topic.txt")


@cache
def group_not_offered() -> dict[str, NotOffered]:
    """The same of groups."""
    return read_table("not_offered_group.txt")


def base_name(name: str) -> str:
    """The name without the listener and the mechanism in front of it."""
    found = _LISTENER.fullmatch(name)
    if found is None:
        return name
    return next((key for key in _PER_MECHANISM if found[2].endswith(f".{key}")), found[2])


def split_listener(name: str) -> tuple[str, str] | None:
    """The listener, in capitals, and the rest of a name; None for a name of the whole broker."""
    found = _LISTENER.fullmatch(name)
    return (found[1].upper(), found[2]) if found is not None else None


def broker_setting(name: str) -> Setting | NotOffered | None:
    """The setting of a name in a broker's file."""
    base = base_name(name)
    if base != name and not base.startswith(_PER_LISTENER):
        return None
    return BROKER.get(base) or broker_not_offered().get(base)


def topic_setting(name: str) -> Setting | None:
    """The setting of topics behind a name, offered or not."""
    row = topic_not_offered().get(name)
    return TOPIC.get(name) if row is None else row.setting


def group_setting(name: str) -> Setting | None:
    """The setting of groups behind a name, offered or not."""
    row = group_not_offered().get(name)
    return GROUP.get(name) if row is None else row.setting


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    import difflib  # noqa: PLC0415  # only for those who mistype

    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.7)), None)


def unknown_setting(name: str, names: Iterable[str]) -> str:
    """The message for an unknown name."""
    meant = nearest(name, names)
    shown = name if name.isprintable() else ascii(name)  # a file that is no text must not rule the terminal
    return f"unknown setting {shown}" + (f"; did you mean {meant}?" if meant else "")
