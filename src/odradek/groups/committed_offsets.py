"""All committed offsets of one shard, and those of open transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from odradek.common.ids import TopicPartition
from odradek.groups.committed import OffsetAndMetadata

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
_NOTHING: Offsets = MappingProxyType({})


class CommittedOffsets:
    """Offsets by group and partition. Owned by its shard's state; only replayed records change it."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        # None stands for an offset that the transaction deletes.
        self._pending: dict[int, dict[tuple[str, TopicPartition], OffsetAndMetadata | None]] = {}
        # The same the other way round: the producers with a pending offset, by group and partition.
        self._pending_producers: dict[str, dict[TopicPartition, set[int]]] = {}

    def __iter__(self) -> Iterator[str]:
        """The groups that have committed offsets."""
        return iter(list(self._by_group))

    def of(self, group_id: str) -> Offsets:
        """The offsets of a group."""
        return self._by_group.get(group_id, _NOTHING)

    def put(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Set one offset; None deletes it."""
        if committed is not None:
            self._by_group.setdefault(group_id, {})[partition] = committed
            return
        offsets = self._by_group.get(group_id, {})
        offsets.pop(partition, None)
        if not offsets:
            self._by_group.pop(group_id, None)

    # Transactions

    def put_pending(
        self, producer_id: int, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None
    ) -> None:
        """Set one offset when the producer's transaction is committed."""
        pending = self._pending.setdefault(producer_id, {})
        if (group_id, partition) not in pending:
            producers = self._pending_producers.setdefault(group_id, {}).setdefault(partition, set())
            producers.add(producer_id)
        pending[group_id, partition] = committed

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply or discard the offsets of a transaction that has ended."""
        for (group_id, partition), committed in self._pending.pop(producer_id, {}).items():
            self._forget_pending(producer_id, group_id, partition)
            if is_commit:
                self.put(group_id, partition, committed)

    def _forget_pending(self, producer_id: int, group_id: str, partition: TopicPartition) -> None:
        partitions = self._pending_producers[group_id]
        partitions[partition].discard(producer_id)
        if not partitions[partition]:
            del partitions[partition]
        if not partitions:
            del self._pending_producers[group_id]

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction may change this offset."""
        return partition in self._pending_producers.get(group_id, ())

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction may change an offset of this group."""
        return group_id in self._pending_producers
