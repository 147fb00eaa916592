"""Where a broker's values come from: set for this broker, for the cluster, at the start, or the default.

An earlier source wins. Some settings have synonyms, finer units before coarser ones (`log.retention.ms`
before `log.retention.hours`). DescribeConfigs lists the synonyms of each value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from odradek.broker.settings import catalog
from odradek.broker.settings.not_offered import NotOffered
from odradek.common.config import Setting, Value


class Source(IntEnum):
    """Who set a value, numbered as DescribeConfigs numbers it."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """One of the values that would count if the ones before it were not there."""

    name: str
    value: str | None
    source: Source


_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
BROKER_SYNONYMS: dict[str, tuple[str, ...]] = {
    **{name: names for names in _SYNONYMS for name in names},
    # One way only: the scheduler's interval has a meaning of its own.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}


@dataclass(frozen=True)
class Sources:
    """The values that were set, as text, by who set them. Never changed: a change makes a new one."""

    static: Mapping[str, str] = field(default_factory=dict)
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    dynamic_broker: Mapping[str, str] = field(default_factory=dict)

    def texts(self) -> dict[str, str]:
        """The effective values: a dynamic value also replaces the synonyms before it."""
        texts = dict(self.static)
        for dynamic in (self.dynamic_default, self.dynamic_broker):
            for name, text in dynamic.items():
                for hidden in BROKER_SYNONYMS.get(name, ()):
                    texts.pop(hidden, None)
                texts[name] = text
        return texts

    def synonyms(self, name: str) -> list[Synonym]:
        """Every value that `name` could have, the one that counts first; empty without value and default."""
        names = _names_of(name)
        found = [
            Synonym(one, _shown(name, values[one]), source)
            for source, values in (
                (Source.DYNAMIC_BROKER, self.dynamic_broker),
                (Source.DYNAMIC_DEFAULT_BROKER, self.dynamic_default),
                (Source.STATIC_BROKER, self.static),
                (Source.DEFAULT, broker_defaults()),
            )
            for one in names
            if one in values
        ]
        # Kafka lists only what follows the first value of the requested name.
        while found and found[0].name != name:
            del found[0]
        return found


@cache
def broker_defaults() -> dict[str, str]:
    """The default of every setting that has one, offered or not, as text."""
    not_offered = (row.setting for row in catalog.broker_not_offered().values())
    settings = (*catalog.BROKER.values(), *not_offered)
    return {one.key: text for one in settings if (text := one.print(one.default)) is not None}


def known_setting(name: str) -> Setting | None:
    """The setting behind a name, offered or not."""
    known = catalog.broker_setting(name) or catalog.DYNAMIC_ONLY.get(name)
    return known.setting if isinstance(known, NotOffered) else known


def effective(sources: Sources) -> dict[str, Value]:
    """Every offered setting with the value that counts; InvalidValue where one cannot be."""
    texts = sources.texts()
    return {
        key: setting.parse(texts[key]) if key in texts else setting.default
        for key, setting in catalog.BROKER.items()
    }


def _names_of(name: str) -> tuple[str, ...]:
    base = catalog.base_name(name)
    return (name, base) if base != name else BROKER_SYNONYMS.get(name, (name,))


def _shown(name: str, text: str) -> str | None:
    """Passwords and values of unknown settings are hidden."""
    setting = known_setting(name)
    return None if setting is None or setting.is_sensitive else text
