"""A topic's settings: its own, or else the broker's value behind each, which may be in another unit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from odradek.broker.settings import catalog
from odradek.common.config import Setting, Value
from odradek.common.errors import ConfigError
from odradek.log.config import LogConfig

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS

# The broker's settings behind a topic's: the first that has a value counts, times its unit in milliseconds.
TOPIC_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}


def topic_config(broker_values: Mapping[str, Value], overrides: Mapping[str, str]) -> LogConfig:
    """The settings of a topic; ConfigError for one that it cannot have.

    `broker_values` are a broker's effective values by key, `overrides` what was set for the topic itself.
    """
    return dataclasses.replace(_topic_defaults(broker_values), **parse_overrides(overrides))


def parse_overrides(overrides: Mapping[str, str]) -> dict[str, Any]:
    """What was set for a topic as fields of LogConfig; without what may be set but has no effect."""
    values: dict[str, Any] = {}
    for name, text in overrides.items():
        if name in catalog.topic_not_offered():
            catalog.topic_not_offered()[name].check(text)
        elif name in catalog.TOPIC:
            values[_field(catalog.TOPIC[name])] = catalog.TOPIC[name].parse(text)
        else:
            meant = catalog.nearest(name, catalog.TOPIC)
            advice = f"; did you mean {meant}?" if meant else ""
            raise ConfigError(f"Unknown topic config name: {name}{advice}")
    return values


def _topic_defaults(broker_values: Mapping[str, Value]) -> LogConfig:
    values: dict[str, Any] = {}
    for name, synonyms in TOPIC_SYNONYMS.items():
        if name in catalog.TOPIC:
            values[_field(catalog.TOPIC[name])] = _first_value(broker_values, synonyms)
    # Kafka treats any negative age as "keep forever".
    values["retention_ms"] = max(values["retention_ms"], -1)
    return LogConfig(**values)


def _first_value(broker_values: Mapping[str, Value], synonyms: tuple[tuple[str, int], ...]) -> Value:
    for name, factor in synonyms:
        value = broker_values[name]
        if value is not None:
            return value * factor if isinstance(value, int) and factor != 1 else value
    return None


def _field(setting: Setting) -> str:
    return setting.key.replace(".", "_")
