"""The records of groups of the consumer protocol: how they are written and replayed.

An operation applies the records it makes with the same function that replays them, so that a coordinator
that loads the log gets the same group.

| type | key | value |
| --- | --- | --- |
| 3 | group | group epoch, hash of the topics |
| 5 | group, member | the member's metadata |
| 6 | group | epoch and time of the target assignment |
| 7 | group, member | the member's target assignment |
| 8 | group, member | member epoch, current assignment, partitions to revoke |
| 16 | group, pattern | the topics that match |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from odradek.coordinator.record_codec import RecordCodec
from odradek.coordinator.result import CoordinatorRecord
from odradek.groups.consumer.consumer_group import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    PartitionId,
    ResolvedRegex,
    with_item,
    without_item,
)
from odradek.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from odradek.protocol.structs import Message

_Classic = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
_CODEC = RecordCodec("consumer-offsets.txt")
_STATES = {state.value: state for state in MemberState}

CONSUMER_KEYS = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


class Change(NamedTuple):
    """A record as messages; without a value the key is deleted."""

    key: Message
    value: Message | None

    def record(self) -> CoordinatorRecord:
        """The encoded record."""
        return _CODEC.encode(self.key, self.value)


# Making them


def member_metadata(group_id: str, member: ConsumerMember) -> Change:
    """A member's metadata."""
    classic = None
    if member.classic is not None:
        classic = _Classic(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                _Classic.SupportedProtocols(name=name, metadata=metadata)
                for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=classic,
    )
    return Change(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Change:
    """A new epoch of the group."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Change(ConsumerGroupMetadataKey(group_id=group_id), value)


def target_member(group_id: str, member_id: str, partitions: Iterable[PartitionId]) -> Change:
    """A member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValue.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in by_topic(partitions).items()
        ]
    )
    return Change(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Change:
    """The epoch of the target assignment."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return Change(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_assignment(group_id: str, member: ConsumerMember) -> Change:
    """A member's current assignment, and the partitions it has to revoke."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            ConsumerGroupCurrentMemberAssignmentValue.AssignedPartitions(
                topic_id=topic_id, partitions=indexes, assignment_epochs=epochs
            )
            for topic_id, indexes, epochs in _with_epochs(member.assigned)
        ],
        partitions_pending_revocation=[
            ConsumerGroupCurrentMemberAssignmentValue.PartitionsPendingRevocation(
                topic_id=topic_id, partitions=indexes, assignment_epochs=epochs
            )
            for topic_id, indexes, epochs in _with_epochs(member.revoking)
        ],
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return Change(key, value)


def resolved_regex(group_id: str, regex: str, resolved: ResolvedRegex) -> Change:
    """The topics that match a pattern."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return Change(_regex_key(group_id, regex), value)


def regex_tombstone(group_id: str, regex: str) -> Change:
    """Delete a pattern."""
    return Change(_regex_key(group_id, regex), None)


def member_tombstones(group_id: str, member_id: str) -> list[Change]:
    """Delete everything about a member; in this order, so that a partly read log is consistent."""
    names = {"group_id": group_id, "member_id": member_id}
    return [
        Change(ConsumerGroupCurrentMemberAssignmentKey(**names), None),
        Change(ConsumerGroupTargetAssignmentMemberKey(**names), None),
        Change(ConsumerGroupMemberMetadataKey(**names), None),
    ]


def group_tombstones(group: ConsumerGroup) -> list[Change]:
    """Delete everything about a group."""
    group_id = group.group_id
    changes = [change for member_id in group.members for change in member_tombstones(group_id, member_id)]
    changes += [regex_tombstone(group_id, regex) for regex in group.regexes]
    return [
        *changes,
        Change(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        Change(ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
        Change(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def _regex_key(group_id: str, regex: str) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)


def by_topic(partitions: Iterable[PartitionId]) -> dict[bytes, list[int]]:
    """The numbers of the partitions of each topic."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return topics


def _with_epochs(partitions: Mapping[PartitionId, int]) -> list[tuple[bytes, list[int], list[int]]]:
    return [
        (topic_id, indexes, [partitions[topic_id, index] for index in indexes])
        for topic_id, indexes in by_topic(partitions).items()
    ]


# Replaying them


def apply(group: ConsumerGroup, key: Any, value: Any) -> ConsumerGroup | None:
    """The group after a record; None if it is deleted. Tombstones of unknown keys change nothing."""
    match key:
        case ConsumerGroupMetadataKey():
            if value is None:
                return None
            return replace(group, group_epoch=value.epoch, metadata_hash=value.metadata_hash)
        case ConsumerGroupMemberMetadataKey():
            return _apply_member(group, key.member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            return _apply_target_epoch(group, value)
        case ConsumerGroupTargetAssignmentMemberKey():
            if value is None:
                return replace(group, targets=without_item(group.targets, key.member_id))
            targets = frozenset(_partitions(value.topic_partitions))
            return replace(group, targets=with_item(group.targets, key.member_id, targets))
        case ConsumerGroupCurrentMemberAssignmentKey():
            return _apply_current(group, key.member_id, value)
        case ConsumerGroupRegularExpressionKey():
            return _apply_regex(group, key.regular_expression, value)
    # Type 4 is the topic metadata that older brokers wrote.
    return group


def _apply_member(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> ConsumerGroup:
    if value is None:
        return replace(group, members=without_item(group.members, member_id))
    classic_metadata = value.classic_member_metadata
    classic = None
    if classic_metadata is not None:
        protocols = tuple((one.name, one.metadata) for one in classic_metadata.supported_protocols)
        classic = ClassicMetadata(classic_metadata.session_timeout_ms, protocols)
    known = group.members.get(member_id) or ConsumerMember(member_id)
    return group.with_member(
        replace(
            known,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=classic,
        )
    )


def _apply_target_epoch(
    group: ConsumerGroup, value: ConsumerGroupTargetAssignmentMetadataValue | None
) -> ConsumerGroup:
    if value is None:
        return replace(group, assignment_epoch=-1, assignment_timestamp_ms=0)
    return replace(
        group, assignment_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp
    )


def _apply_current(
    group: ConsumerGroup, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerGroup:
    known = group.members.get(member_id)
    if value is None:
        return group if known is None else group.with_member(replace(known, assigned={}, revoking={}))
    state = _STATES.get(value.state, MemberState.UNKNOWN)
    return group.with_member(
        replace(
            known or ConsumerMember(member_id),
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=state,
            assigned=_read_epochs(value.assigned_partitions, value.member_epoch),
            revoking=_read_epochs(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _apply_regex(
    group: ConsumerGroup, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> ConsumerGroup:
    if value is None:
        return replace(group, regexes=without_item(group.regexes, regex))
    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    return replace(group, regexes=with_item(group.regexes, regex, resolved))


def _partitions(topics: Iterable[Any]) -> Iterable[PartitionId]:
    return ((topic.topic_id, index) for topic in topics for index in topic.partitions)


def _read_epochs(topics: Iterable[Any], default: int) -> Mapping[PartitionId, int]:
    """Partitions with their assignment epochs; older brokers did not write those."""
    found: dict[PartitionId, int] = {}
    for topic in topics:
        epochs = topic.assignment_epochs or [default] * len(topic.partitions)
        found.update(zip(((topic.topic_id, index) for index in topic.partitions), epochs, strict=False))
    return MappingProxyType(found)
