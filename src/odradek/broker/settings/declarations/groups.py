"""Consumer groups of both protocols, their committed offsets, and what one group may set for itself."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.broker.settings.declarations.declare import (
    HIGH,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    cluster_wide,
    one_of_any_case,
    read_only,
    theme,
)
from odradek.common.config import INT_MAX, at_least, each_of, setting


@theme
class GroupSettings:
    """Coordinators of groups: sessions, rebalances, the topic of offsets."""

    group_coordinator_rebalance_protocols: tuple[str, ...] = read_only(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer"),
        "The group protocols that clients may use.",
        each_of("classic", "consumer"),
    )
    group_initial_rebalance_delay_ms: int = read_only(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long the first rebalance of an empty group waits for more members.",
    )
    group_min_session_timeout_ms: int = read_only(
        "group.min.session.timeout.ms", INT, 6000, "The shortest session that a member may ask for."
    )
    group_max_session_timeout_ms: int = read_only(
        "group.max.session.timeout.ms", INT, 1_800_000, "The longest session that a member may ask for."
    )
    group_max_size: int = read_only(
        "group.max.size", INT, INT_MAX, "The most members of a group.", at_least(1)
    )
    group_consumer_assignors: tuple[str, ...] = read_only(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "Server-side assignors by name; the first is the default.",
    )
    group_consumer_assignment_interval_ms: int = cluster_wide(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        "Pause between two assignments of one group.",
        at_least(0),
    )
    group_consumer_min_assignment_interval_ms: int = read_only(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        "The least that a group may set for its assignment interval.",
        at_least(0),
    )
    group_consumer_max_assignment_interval_ms: int = read_only(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        "The most that a group may set for its assignment interval.",
        at_least(0),
    )
    group_consumer_heartbeat_interval_ms: int = read_only(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "The heartbeat interval of members.",
        at_least(1),
    )
    group_consumer_min_heartbeat_interval_ms: int = read_only(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The least that a group may set for its heartbeat interval.",
        at_least(1),
    )
    group_consumer_max_heartbeat_interval_ms: int = read_only(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The most that a group may set for its heartbeat interval.",
        at_least(1),
    )
    group_consumer_session_timeout_ms: int = read_only(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "How long a member may be silent before it is dropped.",
        at_least(1),
    )
    group_consumer_min_session_timeout_ms: int = read_only(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "The least that a group may set for its session time-out.",
        at_least(1),
    )
    group_consumer_max_session_timeout_ms: int = read_only(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "The most that a group may set for its session time-out.",
        at_least(1),
    )
    group_consumer_max_size: int = read_only(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        "The most members of a group of the new protocol.",
        at_least(1),
    )
    group_consumer_migration_policy: str = read_only(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Which groups move between the classic and the new protocol when their members do.",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    )
    offset_metadata_max_bytes: int = read_only(
        "offset.metadata.max.bytes", INT, 4096, "The longest note beside a committed offset.", importance=HIGH
    )
    offsets_commit_timeout_ms: int = read_only(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a commit may wait for its replicas.",
        at_least(1),
        importance=HIGH,
    )
    offsets_load_buffer_size: int = read_only(
        "offsets.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when a coordinator loads its offsets.",
        at_least(1),
        importance=HIGH,
    )
    offsets_retention_check_interval_ms: int = read_only(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        "How often committed offsets are looked over for ones that may go.",
        at_least(1),
        importance=HIGH,
    )
    offsets_retention_minutes: int = read_only(
        "offsets.retention.minutes",
        INT,
        10_080,
        "How long offsets outlive their group's last member.",
        at_least(1),
        importance=HIGH,
    )
    offsets_topic_compression_codec: int = read_only(
        "offsets.topic.compression.codec",
        INT,
        0,
        "The codec of the topic of offsets, by number.",
        importance=HIGH,
    )
    offsets_topic_num_partitions: int = read_only(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of the topic of offsets; must never change once it exists.",
        at_least(1),
        importance=HIGH,
    )
    offsets_topic_replication_factor: int = read_only(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of the topic of offsets; unless set, not more than brokers alive at its creation.",
        at_least(1),
        importance=HIGH,
    )
    offsets_topic_segment_bytes: int = read_only(
        "offsets.topic.segment.bytes",
        INT,
        104_857_600,
        "Size of the segments of the topic of offsets.",
        at_least(1),
        importance=HIGH,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What counts for one group of the new protocol; `group.` in front of a key is the broker's own."""

    consumer_session_timeout_ms: int = setting(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        "How long a member of this group may be silent before it is dropped.",
        at_least(1),
    )
    consumer_heartbeat_interval_ms: int = setting(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        "The heartbeat interval of members of this group.",
        at_least(1),
    )
    consumer_assignment_interval_ms: int = setting(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        "Pause between two assignments of this group.",
        at_least(0),
    )
