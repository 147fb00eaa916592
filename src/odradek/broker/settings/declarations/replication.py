"""Followers, the ISR, elections, checkpoints, and moves between log directories."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    LONG,
    STRING,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import at_least, one_of

LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@theme
class ReplicationSettings:
    """Read by the leaders and the followers of partitions."""

    num_replica_fetchers: int = cluster_wide(
        "num.replica.fetchers",
        INT,
        1,
        "Loops that fetch from each leader; a change applies to partitions that are followed from then on.",
        at_least(1),
        importance=HIGH,
    )
    replica_fetch_backoff_ms: int = read_only(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "The longest time for which a partition is left out of fetches after an error.",
        at_least(0),
    )
    replica_fetch_max_bytes: int = read_only(
        "replica.fetch.max.bytes", INT, 1 << 20, "Bytes of one partition in a follower's fetch.", at_least(0)
    )
    replica_fetch_min_bytes: int = read_only(
        "replica.fetch.min.bytes", INT, 1, "Bytes for which a follower's fetch waits.", importance=HIGH
    )
    replica_fetch_response_max_bytes: int = read_only(
        "replica.fetch.response.max.bytes", INT, 10 << 20, "Bytes in the response to a follower.", at_least(0)
    )
    replica_fetch_wait_max_ms: int = read_only(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "The longest time for which a follower's fetch waits for bytes.",
        importance=HIGH,
    )
    replica_socket_timeout_ms: int = read_only(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "How long a follower waits for a response.",
        importance=HIGH,
    )
    replica_lag_time_max_ms: int = read_only(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not had everything of its leader for so long is not in sync.",
        importance=HIGH,
    )
    replica_selector_class: str | None = read_only(
        "replica.selector.class",
        STRING,
        None,
        "Which replica consumers read from: the leader, or one in their rack (KIP-392).",
        one_of(LEADER_SELECTOR, RACK_AWARE_SELECTOR),
    )
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
    controlled_shutdown_enable: bool = read_only(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a broker that stops asks the controller to move its leaders first.",
    )
    controlled_shutdown_max_retries: int = read_only(
        "controlled.shutdown.max.retries",
        INT,
        3,
        "How often a broker that stops asks again, if leaders could not be moved.",
    )
    controlled_shutdown_retry_backoff_ms: int = read_only(
        "controlled.shutdown.retry.backoff.ms",
        LONG,
        5000,
        "The pause before a broker that stops asks again.",
    )
    controller_socket_timeout_ms: int = read_only(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        "How long the controller and the brokers wait for each other's responses.",
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
