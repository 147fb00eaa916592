# cython: annotation_typing=False
"""Wakes requests that wait for a partition, and notifies the coordinators of internal topics.

Called after every append. Compiled by Cython (partition_listener.pxd has the C types), or
interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.requests.waiting.purgatory import CommitPurgatory, Purgatory
from odradek.replication.partition import Partition, Progress

_APPENDED, _COMMITTED = Progress.APPENDED, Progress.COMMITTED


class PartitionListener:
    """Notified after every append, follower fetch or leadership change. Owned by the broker, on the loop.

    `leaderships`: callbacks for the partitions of an internal topic, by its name.
    """

    def __init__(
        self,
        waiting_fetches: Purgatory,
        waiting_followers: Purgatory,
        waiting_deletes: Purgatory,
        waiting_produces: CommitPurgatory,
        waiting_flushes: CommitPurgatory,
        leaderships: dict[str, Callable[[Partition], None]],
        flush_soon: Callable[[Partition], None],
    ) -> None:
        self._waiting_fetches = waiting_fetches
        self._waiting_followers = waiting_followers
        self._waiting_deletes = waiting_deletes
        self._waiting_produces = waiting_produces
        self._waiting_flushes = waiting_flushes
        self._watched_by_fetches = waiting_fetches.watching
        self._watched_by_followers = waiting_followers.watching
        self._watched_by_deletes = waiting_deletes.watching
        self._watched_by_produces = waiting_produces.watching
        self._watched_by_flushes = waiting_flushes.watching
        self._leaderships = leaderships
        self._flush_soon = flush_soon

    def on_append(self, partition: Partition) -> None:
        """More can be read, or the high watermark or the leader of the partition has changed.

        An append that is not committed wakes followers only, a commit all other waiting requests.
        """
        progress = partition.progress
        if partition.awaits_flush:
            self._flush_soon(partition)
        if self._watched_by_followers and progress != _COMMITTED:
            self._waiting_followers.wake(partition.topic_partition)
        if progress != _APPENDED:
            if self._watched_by_fetches:
                self._waiting_fetches.wake(partition.topic_partition)
            if self._watched_by_produces:
                self._waiting_produces.wake(partition)
        if self._watched_by_flushes:
            self._waiting_flushes.wake(partition)
        if self._watched_by_deletes:
            self._waiting_deletes.wake(partition.topic_partition)
        coordinator = self._leaderships.get(partition.topic)
        if coordinator is not None:
            coordinator(partition)
