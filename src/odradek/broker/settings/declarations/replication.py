"""Followers, the ISR, elections, and how fast copies may run."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    LONG,
    LOW,
    STRING,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import at_least, one_of

SELECTORS = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)


@theme
class ReplicationSettings:
    """Fetching between brokers, elections, and the windows in which quotas are measured."""

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
    replica_lag_time_max_ms: int = read_only(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not caught up for this long leaves the ISR.",
        importance=HIGH,
    )
    num_replica_fetchers: int = cluster_wide(
        "num.replica.fetchers", INT, 1, "Fetching loops per leader.", at_least(1), importance=HIGH
    )
    replica_fetch_wait_max_ms: int = read_only(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a leader may hold a follower's fetch that finds too little.",
        importance=HIGH,
    )
    replica_fetch_min_bytes: int = read_only(
        "replica.fetch.min.bytes",
        INT,
        1,
        "What a follower's fetch should find before it is answered.",
        importance=HIGH,
    )
    replica_fetch_max_bytes: int = read_only(
        "replica.fetch.max.bytes",
        INT,
        1_048_576,
        "What a follower asks for per partition; a first batch may be larger.",
        at_least(0),
    )
    replica_fetch_response_max_bytes: int = read_only(
        "replica.fetch.response.max.bytes",
        INT,
        10_485_760,
        "What a follower asks for in one answer; a first batch may be larger.",
        at_least(0),
    )
    replica_fetch_backoff_ms: int = read_only(
        "replica.fetch.backoff.ms", INT, 1000, "Pause of a follower after a failed fetch.", at_least(0)
    )
    replica_socket_timeout_ms: int = read_only(
        "replica.socket.timeout.ms", INT, 30_000, "How long a follower waits for an answer.", importance=HIGH
    )
    replica_socket_receive_buffer_bytes: int = read_only(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        "The receive buffer of a follower's socket.",
        importance=HIGH,
    )
    replica_high_watermark_checkpoint_interval_ms: int = read_only(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often the high watermarks are written.",
        importance=HIGH,
    )
    replica_selector_class: str | None = read_only(
        "replica.selector.class",
        STRING,
        None,
        "Which replica a consumer reads from: without a value the leader, or one in the consumer's rack.",
        one_of(*SELECTORS),
    )
    num_replica_alter_log_dirs_threads: int | None = read_only(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        "Loops that move replicas between the directories of a broker; without a value one per directory.",
        importance=HIGH,
    )
    controller_socket_timeout_ms: int = read_only(
        "controller.socket.timeout.ms", INT, 30_000, "How long the controller waits for a broker's answer."
    )
    quota_window_num: int = read_only(
        "quota.window.num",
        INT,
        11,
        "Windows over which client quotas are measured.",
        at_least(1),
        importance=LOW,
    )
    quota_window_size_seconds: int = read_only(
        "quota.window.size.seconds",
        INT,
        1,
        "Length of a window for client quotas.",
        at_least(1),
        importance=LOW,
    )
    controller_quota_window_num: int = read_only(
        "controller.quota.window.num",
        INT,
        11,
        "Windows over which the quota of topic changes is measured.",
        at_least(1),
        importance=LOW,
    )
    controller_quota_window_size_seconds: int = read_only(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "Length of a window for the quota of topic changes.",
        at_least(1),
        importance=LOW,
    )
    replication_quota_window_num: int = read_only(
        "replication.quota.window.num",
        INT,
        11,
        "Windows over which throttled replication is measured.",
        at_least(1),
        importance=LOW,
    )
    replication_quota_window_size_seconds: int = read_only(
        "replication.quota.window.size.seconds",
        INT,
        1,
        "Length of a window for throttled replication.",
        at_least(1),
        importance=LOW,
    )
    alter_log_dirs_replication_quota_window_num: int = read_only(
        "alter.log.dirs.replication.quota.window.num",
        INT,
        11,
        "Windows over which moves between directories are measured.",
        at_least(1),
        importance=LOW,
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = read_only(
        "alter.log.dirs.replication.quota.window.size.seconds",
        INT,
        1,
        "Length of a window for moves between directories.",
        at_least(1),
        importance=LOW,
    )
