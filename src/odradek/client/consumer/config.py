"""The settings of a consumer, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from odradek.client.config import ClientConfig, from_keywords
from odradek.client.consumer.offset_reset import VALID_RESET
from odradek.common.config import Importance, Kind, Valid, at_least, each_of, one_of, setting
from odradek.common.errors import ConfigError

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
COOPERATIVE = "cooperative-sticky"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """The settings of a consumer."""

    group_id: str | None = setting(
        "group.id",
        Kind.STRING,
        None,
        "The group that shares the topics and keeps their offsets; none: assign, and no commits.",
        Valid(lambda value: value is None or bool(value), "not empty"),
        importance=Importance.HIGH,
    )
    group_instance_id: str | None = setting(
        "group.instance.id",
        Kind.STRING,
        None,
        "The name of a static member, which keeps its partitions while it is away for session.timeout.ms.",
        Valid(lambda value: value is None or bool(value), "not empty"),
    )
    group_protocol: str = setting(
        "group.protocol",
        Kind.STRING,
        "classic",
        "Who assigns: the members themselves (classic) or the broker (consumer, KIP-848).",
        one_of("classic", "consumer"),
    )
    group_remote_assignor: str | None = setting(
        "group.remote.assignor", Kind.STRING, None, "The broker's assignor, with group.protocol=consumer."
    )
    partition_assignment_strategy: tuple[str, ...] = setting(
        "partition.assignment.strategy",
        Kind.LIST,
        ("range", COOPERATIVE),
        "How a classic group shares partitions; the first that all members have is used.",
        each_of(*ASSIGNORS),
    )
    session_timeout_ms: int = setting(
        "session.timeout.ms",
        Kind.INT,
        45_000,
        "A member without a heartbeat for so long is removed.",
        at_least(1),
    )
    heartbeat_interval_ms: int = setting(
        "heartbeat.interval.ms", Kind.INT, 3000, "How often a member sends a heartbeat.", at_least(1)
    )
    max_poll_interval_ms: int = setting(
        "max.poll.interval.ms",
        Kind.INT,
        300_000,
        "A member that does not poll for so long leaves.",
        at_least(1),
    )
    max_poll_records: int = setting(
        "max.poll.records", Kind.INT, 500, "The most records that one poll returns.", at_least(1)
    )
    auto_offset_reset: str = setting(
        "auto.offset.reset",
        Kind.STRING,
        "latest",
        "Where to begin without a committed offset: earliest, latest, by_duration:P1D, or none (an error).",
        VALID_RESET,
    )
    enable_auto_commit: bool = setting(
        "enable.auto.commit", Kind.BOOLEAN, True, "Whether poll commits what earlier polls returned."
    )
    auto_commit_interval_ms: int = setting(
        "auto.commit.interval.ms",
        Kind.INT,
        5000,
        "How often offsets are committed automatically.",
        at_least(0),
    )
    isolation_level: str = setting(
        "isolation.level",
        Kind.STRING,
        "read_uncommitted",
        "Whether records of transactions are read before they are committed.",
        one_of("read_uncommitted", "read_committed"),
    )
    fetch_min_bytes: int = setting(
        "fetch.min.bytes",
        Kind.INT,
        1,
        "A broker responds to a fetch when it has so many bytes, …",
        at_least(0),
    )
    fetch_max_wait_ms: int = setting("fetch.max.wait.ms", Kind.INT, 500, "… or after this time.", at_least(0))
    fetch_max_bytes: int = setting(
        "fetch.max.bytes", Kind.INT, 52_428_800, "The most bytes that one fetch returns.", at_least(0)
    )
    max_partition_fetch_bytes: int = setting(
        "max.partition.fetch.bytes",
        Kind.INT,
        1_048_576,
        "The most bytes that one fetch returns of a partition.",
        at_least(0),
    )
    check_crcs: bool = setting("check.crcs", Kind.BOOLEAN, True, "Whether batches are checked for damage.")
    client_rack: str = setting(
        "client.rack", Kind.STRING, "", "The rack of this consumer: a replica in it may be read."
    )
    exclude_internal_topics: bool = setting(
        "exclude.internal.topics", Kind.BOOLEAN, True, "Whether a pattern never matches internal topics."
    )
    allow_auto_create_topics: bool = setting(
        "allow.auto.create.topics",
        Kind.BOOLEAN,
        True,
        "Whether subscribing to a topic may create it.",
    )

    @property
    def reads_committed(self) -> bool:
        """Whether records of aborted and open transactions are skipped."""
        return self.isolation_level == "read_committed"

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep reading what they keep while a classic group is rebalanced."""
        return all(name == COOPERATIVE for name in self.partition_assignment_strategy)


def consumer_config(keywords: Mapping[str, Any]) -> ConsumerConfig:
    """A consumer's settings; ConfigError where two of them contradict each other."""
    config = from_keywords(ConsumerConfig, keywords)
    if config.group_id is None:
        _check_without_group(config, keywords)
        return replace(config, enable_auto_commit=False)
    if config.group_protocol == "consumer":
        _check_new_protocol(keywords)
    elif config.group_remote_assignor is not None:
        raise ConfigError("group_remote_assignor needs group_protocol=consumer")
    if config.heartbeat_interval_ms >= config.session_timeout_ms:
        raise ConfigError(
            f"heartbeat_interval_ms={config.heartbeat_interval_ms} must be less than "
            f"session_timeout_ms={config.session_timeout_ms}: a third of it is usual"
        )
    return config


def _check_without_group(config: ConsumerConfig, keywords: Mapping[str, Any]) -> None:
    for name in ("enable_auto_commit", "group_instance_id"):
        if keywords.get(name):
            raise ConfigError(f"{name}={keywords[name]!r} needs a group_id")
    if config.group_protocol == "consumer" or config.group_remote_assignor is not None:
        raise ConfigError("group_protocol=consumer needs a group_id")


def _check_new_protocol(keywords: Mapping[str, Any]) -> None:
    for name in ("partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms"):
        if name in keywords:
            raise ConfigError(f"{name} is the broker's to decide with group_protocol=consumer")
