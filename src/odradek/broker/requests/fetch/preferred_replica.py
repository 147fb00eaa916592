"""The replica that a consumer should read from, by `replica.selector.class` (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.cluster.metadata import MetadataImage
from odradek.replication.partition import Partition
from odradek.replication.replica_selector import ReadableReplica, replica_in_rack


class RackAwareSelector:
    """Finds a replica in the rack of a consumer; called by the leader for each partition that is fetched."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def __call__(self, partition: Partition, rack_id: str, fetch_offset: int, listener: str) -> int | None:
        """The broker that the client should read from; None if it should read here."""
        return replica_in_rack(
            self._readable(partition, fetch_offset, listener), partition.broker_id, rack_id
        )

    def _readable(self, partition: Partition, fetch_offset: int, listener: str) -> Iterator[ReadableReplica]:
        brokers = self._image.brokers
        own = brokers.get(partition.broker_id)
        log = partition.log
        yield ReadableReplica(partition.broker_id, None if own is None else own.rack, log.log_end_offset, 0)
        for follower in partition.followers.values():
            broker = brokers.get(follower.broker_id)
            if (
                broker is not None
                and broker.endpoint(listener) is not None
                and follower.broker_id in partition.isr
                and 0 <= follower.log_start_offset <= fetch_offset <= follower.end_offset
            ):
                yield ReadableReplica(
                    follower.broker_id, broker.rack, follower.end_offset, follower.last_caught_up_ms
                )
