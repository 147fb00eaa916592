"""What the fetchers of a broker share, and what each of them knows of a partition that it follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from odradek.common.clock import Clock
from odradek.common.config import LONG_MAX
from odradek.common.ids import TopicPartition
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.net.broker_connection import BrokerConnection
from odradek.replication.counters import ReplicationCounters
from odradek.replication.follower.fetch_session_handler import FetchPosition, Key
from odradek.replication.partition import Partition
from odradek.replication.throttle import ReplicationThrottle, is_throttled


class FetcherSettings(NamedTuple):
    """The settings of followers, by their Kafka names."""

    num_replica_fetchers: int = 1
    wait_max_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 1 << 20
    response_max_bytes: int = 10 << 20
    backoff_ms: int = 1000
    socket_timeout_ms: int = 30_000
    throttled_rate: int = LONG_MAX
    """`follower.replication.throttled.rate`: bytes per second."""


@dataclass(slots=True, eq=False, repr=False)
class FetcherContext:
    """What all fetchers of a broker share.

    `current_settings`: as they are now; `num.replica.fetchers` can change at run time.
    `connect` returns the connection to a broker for one fetcher, None while its address is not known.
    `on_truncated` is called after records were removed, `on_disk_error` when a log could not be written.
    """

    broker_id: int
    current_settings: Callable[[], FetcherSettings]
    clock: Clock
    counters: ReplicationCounters
    connect: Callable[[int, int], BrokerConnection | None]
    broker_epoch: Callable[[], int]
    in_pool: Callable[[Callable[[], Any]], Awaitable[Any]]
    on_truncated: Callable[[PartitionLog], None]
    on_disk_error: Callable[[TopicPartition, StorageError], object]
    throttle: ReplicationThrottle = field(default_factory=ReplicationThrottle)

    @property
    def settings(self) -> FetcherSettings:
        """The settings as they are now."""
        return self.current_settings()


class FollowedPartition:
    """A partition that a fetcher follows in one leader epoch. Owned by that fetcher.

    `asked`: what the leader was last asked for. `retry_at`: left out of fetches until then, in loop time.
    `is_refused_inside`: it was logged that the leader refuses an offset which is in its log.
    """

    __slots__ = (
        "asked",
        "failures",
        "is_refused_inside",
        "key",
        "lag",
        "leader_epoch",
        "partition",
        "retry_at",
    )

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.key: Key = (partition.topic_id, partition.topic_partition.partition)
        self.asked: FetchPosition | None = None
        self.failures = 0
        self.is_refused_inside = False
        self.retry_at = 0.0
        self.lag = 0

    def is_throttled(self, broker_id: int) -> bool:
        """Whether a limit holds for it: it is listed, and behind its leader."""
        listed = self.partition.log.config.follower_replication_throttled_replicas
        return self.lag > 0 and is_throttled(listed, self.partition.topic_partition.partition, broker_id)

    def fetch_position(self) -> FetchPosition:
        """What to ask the leader for: everything behind the log end."""
        log = self.partition.log
        return FetchPosition(log.log_end_offset, self.leader_epoch, log.epochs.latest, log.log_start_offset)
