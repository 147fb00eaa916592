"""The ISR, elections, checkpoints, and moves between log directories."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    LONG,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import at_least


@theme
class ReplicationSettings:
    """Followers are not offered yet: Kafka's settings about them are in not_offered.txt."""

    min_insync_replicas: int = cluster_wide(
        "min.insync.replicas", INT, 1, "Replicas in sync that acks=all needs.", at_least(1), importance=HIGH
    )
    unclean_leader_election_enable: bool = cluster_wide(
        "unclean.leader.election.enable",
        BOOLEAN,
        False,
        "Whether a replica that is not in sync may lead when no other can; records may be lost then.",
        importance=HIGH,
    )
    auto_leader_rebalance_enable: bool = read_only(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Whether leadership returns by itself to the first replica of each list.",
        importance=HIGH,
    )
    leader_imbalance_check_interval_seconds: int = read_only(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often the spread of leaders is looked at.",
        at_least(1),
        importance=HIGH,
    )
    leader_imbalance_per_broker_percentage: int = read_only(
        "leader.imbalance.per.broker.percentage",
        INT,
        10,
        "Share of partitions led by another than their first replica at which leadership is moved back.",
        importance=HIGH,
    )
    replica_high_watermark_checkpoint_interval_ms: int = read_only(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "The longest time between two writes of the high watermarks; they are written with the others.",
        importance=HIGH,
    )
    num_replica_alter_log_dirs_threads: int | None = read_only(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "Loops that move replicas between the directories of a broker; without a value one per directory.",
        importance=HIGH,
    )
