"""The leader's side of a throttled reassignment: which fetches of followers get no records for now."""

from __future__ import annotations

from collections.abc import Callable

from odradek.common.config import LONG_MAX
from odradek.replication.partition import Partition
from odradek.replication.throttle import ReplicationThrottle, is_throttled


class LeaderThrottle:
    """What this broker has sent to replicas out of sync of the partitions that are throttled here.

    Owned by the broker's services, on the loop. `current_rate`: `leader.replication.throttled.rate`.
    """

    def __init__(self, broker_id: int, current_rate: Callable[[], int]) -> None:
        self._broker_id = broker_id
        self._current_rate = current_rate
        self._throttle = ReplicationThrottle()

    @property
    def is_on(self) -> bool:
        """Whether a rate is set."""
        return self._current_rate() != LONG_MAX

    def holds_for(self, partition: Partition, replica_id: int) -> bool:
        """Whether this follower of this partition is limited: never one in sync, which acks=all waits for."""
        listed = partition.log.config.leader_replication_throttled_replicas
        return (
            bool(listed)
            and replica_id not in partition.isr
            and is_throttled(listed, partition.topic_partition.partition, self._broker_id)
        )

    def is_exceeded(self, now_ms: float) -> bool:
        """Whether followers that are limited get no records now."""
        return self._throttle.wait_ms(self._current_rate(), now_ms) > 0

    def sent(self, size: int, now_ms: float) -> None:
        """Records of so many bytes went to followers that are limited."""
        self._throttle.add(size, self._current_rate(), now_ms)
