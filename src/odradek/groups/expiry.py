"""Which committed offsets have expired.

| group | an offset expires |
| --- | --- |
| empty | `offsets.retention.minutes` after the last member left |
| with members, of consumers | that long after its commit, if no member subscribes to the topic any more |
| consumer protocol | that long after its commit, if no member subscribes to the topic |
| never had members | that long after its commit |

Old clients may have set their own expiry. A group without members and offsets is deleted, too.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.common.ids import TopicPartition
from odradek.coordinator.result import CoordinatorRecord
from odradek.groups.classic_group import CONSUMER_PROTOCOL_TYPE, Group, GroupState
from odradek.groups.committed import OffsetAndMetadata
from odradek.groups.committed_offsets import CommittedOffsets
from odradek.groups.consumer.consumer_group import ConsumerGroup
from odradek.groups.consumer.consumer_records import group_tombstones
from odradek.groups.records import group_tombstone, offset_tombstone

BaseTime = Callable[[TopicPartition, OffsetAndMetadata], int | None]
"""The time from which the retention of an offset counts; None if the offset does not expire."""


def expire(
    group: Group | ConsumerGroup | None,
    group_id: str,
    offsets: CommittedOffsets,
    *,
    retention_ms: int,
    now_ms: int,
) -> list[CoordinatorRecord]:
    """The tombstones of everything that has expired in one group."""
    base_time = _base_time(group)
    expired = [
        partition
        for partition, committed in offsets.of(group_id).items()
        if not offsets.is_pending(group_id, partition)
        and _is_expired(committed, base_time(partition, committed), retention_ms, now_ms)
    ]
    records = [offset_tombstone(group_id, partition) for partition in expired]
    is_left = len(expired) < len(offsets.of(group_id)) or offsets.has_pending(group_id)
    if group is not None and not is_left:
        records += _delete_if_empty(group)
    return records


def _delete_if_empty(group: Group | ConsumerGroup) -> list[CoordinatorRecord]:
    if isinstance(group, ConsumerGroup):
        return [] if group.members else [change.record() for change in group_tombstones(group)]
    is_empty = group.state is GroupState.EMPTY and not group.pending_members
    return [group_tombstone(group.group_id)] if is_empty else []


def _is_expired(committed: OffsetAndMetadata, base_ms: int | None, retention_ms: int, now_ms: int) -> bool:
    if base_ms is None:
        return False
    if committed.expire_timestamp_ms is not None:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - base_ms >= retention_ms


def _base_time(group: Group | ConsumerGroup | None) -> BaseTime:
    if isinstance(group, ConsumerGroup):
        read = group.subscribed_topics()
        return lambda partition, committed: (
            committed.commit_timestamp_ms if partition.topic not in read else None
        )
    if group is None or group.protocol_type is None:
        return lambda partition, committed: committed.commit_timestamp_ms
    if group.state is GroupState.EMPTY:
        emptied_ms = group.state_timestamp_ms
        return lambda partition, committed: (
            committed.commit_timestamp_ms if emptied_ms is None else emptied_ms
        )
    topics = group.subscribed_topics()
    if (
        group.protocol_type == CONSUMER_PROTOCOL_TYPE
        and group.state is GroupState.STABLE
        and topics is not None
    ):
        return lambda partition, committed: (
            committed.commit_timestamp_ms if partition.topic not in topics else None
        )
    return lambda partition, committed: None
