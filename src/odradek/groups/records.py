"""The records of groups and offsets in `__consumer_offsets`, as Kafka 4.3 writes them."""

from __future__ import annotations

from types import MappingProxyType

from odradek.common.ids import TopicPartition
from odradek.coordinator.record_codec import RecordCodec
from odradek.coordinator.result import CoordinatorRecord
from odradek.groups.classic_group import Group, GroupState, Member
from odradek.groups.committed import NO_TIMESTAMP, OffsetAndMetadata
from odradek.protocol.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

CODEC = RecordCodec("consumer-offsets.txt")

GROUP_METADATA_VERSION = 3
OFFSET_COMMIT_VERSION = 4
# The only version with an expiry timestamp; old clients may set one.
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1


def group_metadata(group: Group) -> CoordinatorRecord:
    """A classic group: its generation, and each member with its subscription and assignment."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=NO_TIMESTAMP
        if group.state_timestamp_ms is None
        else group.state_timestamp_ms,
        members=[_member_value(member, group.protocol_name) for member in group.members.values()],
    )
    return CODEC.encode(GroupMetadataKey(group=group.group_id), value, GROUP_METADATA_VERSION)


def _member_value(member: Member, protocol_name: str | None) -> GroupMetadataValue.Members:
    return GroupMetadataValue.Members(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=member.assignment,
    )


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """Delete a classic group."""
    return CODEC.encode(GroupMetadataKey(group=group_id), None)


def group_of(group_id: str, value: GroupMetadataValue) -> Group:
    """The group of a record; no requests are parked."""
    members = {
        member.member_id: Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout
            if member.rebalance_timeout >= 0
            else member.session_timeout,
            session_timeout_ms=member.session_timeout,
            protocols=((value.protocol or "", member.subscription),),
            assignment=member.assignment,
        )
        for member in value.members
    }
    timestamp_ms = value.current_state_timestamp
    return Group(
        group_id=group_id,
        state=GroupState.STABLE if members else GroupState.EMPTY,
        generation_id=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader,
        members=MappingProxyType(members),
        state_timestamp_ms=None if timestamp_ms == NO_TIMESTAMP else timestamp_ms,
    )


def offset_commit(
    group_id: str, partition: TopicPartition, committed: OffsetAndMetadata
) -> CoordinatorRecord:
    """A committed offset of a group."""
    expiry_ms = committed.expire_timestamp_ms
    has_expiry = expiry_ms is not None
    version = OFFSET_COMMIT_VERSION_WITH_EXPIRY if has_expiry else OFFSET_COMMIT_VERSION
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch if not has_expiry else NO_TIMESTAMP,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=NO_TIMESTAMP if expiry_ms is None else expiry_ms,
        topic_id=committed.topic_id if not has_expiry else bytes(16),
    )
    return CODEC.encode(_offset_key(group_id, partition), value, version)


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    """Delete a committed offset."""
    return CODEC.encode(_offset_key(group_id, partition), None)


def _offset_key(group_id: str, partition: TopicPartition) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition)


def committed_of(value: OffsetCommitValue) -> OffsetAndMetadata:
    """The committed offset of a record."""
    expiry_ms = value.expire_timestamp
    return OffsetAndMetadata(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if expiry_ms == NO_TIMESTAMP else expiry_ms,
        topic_id=value.topic_id,
    )
