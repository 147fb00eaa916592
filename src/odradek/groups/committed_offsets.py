"""All committed offsets of one shard, and those of open transactions.

Of two commits for one partition the one whose record is newer counts, also if the older one is part of a
transaction that is committed later: only the newer one is left after compaction, for the next coordinator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from odradek.common.ids import TopicPartition
from odradek.groups.committed import OffsetAndMetadata

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
_NOTHING: Offsets = MappingProxyType({})
_NEVER = -1


@dataclass(slots=True)
class _Pending:
    """The open transactions that may change one offset.

    `numbers`: of the newest record of each producer. `applied`: of the newest record in effect since the
    first of them.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    applied: int = _NEVER


class CommittedOffsets:
    """Offsets by group and partition. Owned by its shard's state; only replayed records change it."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        # By producer. None stands for an offset that the transaction deletes.
        self._in_transactions: dict[int, dict[tuple[str, TopicPartition], OffsetAndMetadata | None]] = {}
        # The same the other way round.
        self._pending: dict[str, dict[TopicPartition, _Pending]] = {}
        # Records are numbered in the order of the log.
        self._record_number = 0

    def __iter__(self) -> Iterator[str]:
        """The groups that have offsets, committed or pending."""
        return iter({**self._by_group, **self._pending})

    def of(self, group_id: str) -> Offsets:
        """The committed offsets of a group."""
        return self._by_group.get(group_id, _NOTHING)

    def partitions_of(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions with an offset of the group, committed or pending."""
        return {**self._by_group.get(group_id, _NOTHING), **self._pending.get(group_id, _NOTHING)}

    def put(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
        """Set one offset; None deletes it, with what open transactions would make of it."""
        self._record_number += 1
        pending = self._pending.get(group_id, {}).get(partition)
        if pending is not None:
            if committed is None:
                self._drop_pending(group_id, partition, pending)
            else:
                pending.applied = self._record_number
        self._set(group_id, partition, committed)

    def _set(self, group_id: str, partition: TopicPartition, committed: OffsetAndMetadata | None) -> None:
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
        """Set one offset when the producer's transaction is committed, if none is set after this one."""
        self._record_number += 1
        self._in_transactions.setdefault(producer_id, {})[group_id, partition] = committed
        pending = self._pending.setdefault(group_id, {}).setdefault(partition, _Pending())
        pending.numbers[producer_id] = self._record_number

    def end_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply or discard the offsets of a transaction that has ended."""
        for (group_id, partition), committed in self._in_transactions.pop(producer_id, {}).items():
            pending = self._pending[group_id][partition]
            number = pending.numbers.pop(producer_id)
            if not pending.numbers:
                self._forget(group_id, partition)
            if is_commit and number > pending.applied:
                pending.applied = number
                self._set(group_id, partition, committed)

    def _drop_pending(self, group_id: str, partition: TopicPartition, pending: _Pending) -> None:
        for producer_id in pending.numbers:
            offsets = self._in_transactions[producer_id]
            del offsets[group_id, partition]
            if not offsets:
                del self._in_transactions[producer_id]
        self._forget(group_id, partition)

    def _forget(self, group_id: str, partition: TopicPartition) -> None:
        partitions = self._pending[group_id]
        del partitions[partition]
        if not partitions:
            del self._pending[group_id]

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction may change this offset."""
        return partition in self._pending.get(group_id, ())

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction may change an offset of this group."""
        return group_id in self._pending
