"""Assigns each partition that this broker follows to one of its fetchers."""

from __future__ import annotations

from odradek.common.ids import TopicPartition
from odradek.log.errors import StorageError
from odradek.replication.follower.fetcher import ReplicaFetcher
from odradek.replication.follower.fetcher_context import FetcherContext, FollowedPartition
from odradek.replication.partition import Partition


class FetcherManager:
    """Which fetcher follows which partition. Owned by the ReplicaManager, on the broker's loop.

    A partition is followed by one of `num.replica.fetchers` loops for its leader, by its hash.
    """

    def __init__(self, context: FetcherContext) -> None:
        self.context = context
        self._fetchers: dict[tuple[int, int], ReplicaFetcher] = {}
        self._places: dict[TopicPartition, tuple[ReplicaFetcher, FollowedPartition]] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._places)

    def follow(self, partition: Partition) -> None:
        """Fetch a partition from its leader, in its present leader epoch; from no other one any more."""
        if self._is_stopped:
            return
        topic_partition, leader_id = partition.topic_partition, partition.state.leader_id
        place = self._places.get(topic_partition)
        fetcher = self._fetcher_for(topic_partition, leader_id)
        if place is not None:
            former, followed = place
            if (
                former is fetcher
                and followed.partition is partition
                and followed.leader_epoch == partition.leader_epoch
            ):
                return
            if former is fetcher:
                fetcher.remove(followed.key)
            else:
                self.unfollow(topic_partition)
        followed = FollowedPartition(partition)
        self._places[topic_partition] = (fetcher, followed)
        try:
            fetcher.add(followed)
        except StorageError as error:
            self.context.on_disk_error(topic_partition, error)

    def _fetcher_for(self, topic_partition: TopicPartition, leader_id: int) -> ReplicaFetcher:
        index = hash(topic_partition) % self.context.settings.num_replica_fetchers
        fetcher = self._fetchers.get((leader_id, index))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, index] = ReplicaFetcher(self.context, leader_id, index)
        return fetcher

    def unfollow(self, topic_partition: TopicPartition) -> None:
        """Fetch a partition no more; a fetcher without partitions ends."""
        place = self._places.pop(topic_partition, None)
        if place is None:
            return
        fetcher, followed = place
        fetcher.remove(followed.key)
        if not len(fetcher) and self._fetchers.get((fetcher.leader_id, fetcher.index)) is fetcher:
            del self._fetchers[fetcher.leader_id, fetcher.index]
            fetcher.end()

    def max_lag(self) -> int:
        """The most records by which a followed partition is behind its leader's high watermark."""
        return max((followed.lag for _, followed in self._places.values()), default=0)

    async def stop(self) -> None:
        """End all fetchers, and wait until what they append is appended."""
        self._is_stopped = True
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._places.clear()
        for fetcher in fetchers:
            fetcher.end()
        for fetcher in fetchers:
            await fetcher.wait_until_ended()
