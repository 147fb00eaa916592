# cython: annotation_typing=False
"""Who is to hear of it when more can be read from a partition, or something in it was committed.

Compiled by Cython (progress.pxd has the C types), or interpreted as is: it is asked after every append, and
most often the answer is nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.requests.purgatory import Purgatory
from odradek.replication.partition import Partition


class PartitionListener:
    """The one ear of all partitions. Owned by the broker, on the loop.

    `leaderships`: whoever wants to hear of every progress in an internal topic, by its name.
    """

    def __init__(
        self,
        waiting_fetches: Purgatory,
        waiting_produces: Purgatory,
        leaderships: dict[str, Callable[[Partition], None]],
        flush_soon: Callable[[Partition], None],
    ) -> None:
        self._waiting_fetches = waiting_fetches
        self._waiting_produces = waiting_produces
        self._watched_by_fetches = waiting_fetches.watching
        self._watched_by_produces = waiting_produces.watching
        self._leaderships = leaderships
        self._flush_soon = flush_soon

    def hear(self, partition: Partition) -> None:
        """More can be read, or something was committed, or the partition changed hands."""
        if partition.awaits_flush:
            self._flush_soon(partition)
        if self._watched_by_fetches:
            self._waiting_fetches.wake(partition.topic_partition)
        if self._watched_by_produces:
            self._waiting_produces.wake(partition.topic_partition)
        coordinator = self._leaderships.get(partition.topic)
        if coordinator is not None:
            coordinator(partition)
