"""Committed offsets as messages: requests that commit and fetch them, and their responses. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

LAST_COMMIT_WITH_NAMES = 9
LAST_FETCH_WITH_NAMES = 9
_FIRST_COMMIT_WITH_EPOCHS = 6
_FIRST_FETCH_WITH_STABLE = 7
_FIRST_FETCH_WITH_GROUPS = 8
_FIRST_FETCH_WITH_MEMBERS = 9

OffsetFetchRow: TypeAlias = OffsetFetchResponse | OffsetFetchResponse.Groups


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, with the committer's metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class MemberIdentity(NamedTuple):
    """The member that commits, with its generation (or epoch); empty without one."""

    member_id: str = ""
    generation_id: int = -1
    group_instance_id: str | None = None


class ConsumerGroupMetadata(NamedTuple):
    """A group, and the member of it that processed the records whose offsets are committed."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class CommittedRow(NamedTuple):
    """What the coordinator returns for one partition; an offset of -1 when nothing is committed."""

    partition: TopicPartition
    committed: OffsetAndMetadata
    error_code: int


def commit_request(
    version: int,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    identity: MemberIdentity = MemberIdentity(),  # noqa: B008 (it is immutable)
) -> OffsetCommitRequest:
    """Commit these offsets; for versions up to LAST_COMMIT_WITH_NAMES. Old brokers know no leader epochs."""
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
    )
    if identity.group_instance_id is not None:
        request.group_instance_id = identity.group_instance_id
    topics: dict[str, OffsetCommitRequest.Topics] = {}
    for partition, committed in offsets.items():
        row = OffsetCommitRequest.Topics.Partitions(
            partition_index=partition.partition,
            committed_offset=committed.offset,
            committed_metadata=committed.metadata,
        )
        if version >= _FIRST_COMMIT_WITH_EPOCHS:
            row.committed_leader_epoch = committed.leader_epoch
        topic = topics.setdefault(partition.topic, OffsetCommitRequest.Topics(name=partition.topic))
        topic.partitions.append(row)
    request.topics = list(topics.values())
    return request


def fetch_request(
    version: int,
    group_id: str,
    partitions: Collection[TopicPartition] | None,
    identity: MemberIdentity = MemberIdentity(),  # noqa: B008 (it is immutable)
    *,
    require_stable: bool = True,
) -> OffsetFetchRequest:
    """Fetch the offsets of these partitions, or all that the group has.

    With `require_stable` the coordinator returns UNSTABLE_OFFSET_COMMIT while a transaction is about to
    change an offset; brokers before version 7 do not report it.
    """
    request = OffsetFetchRequest()
    if version >= _FIRST_FETCH_WITH_STABLE:
        request.require_stable = require_stable
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions or ()):
        topics.setdefault(partition.topic, []).append(partition.partition)
    if version >= _FIRST_FETCH_WITH_GROUPS:
        row_class = OffsetFetchRequest.Groups.Topics
        rows = [row_class(name=name, partition_indexes=topics[name]) for name in topics]
        group = OffsetFetchRequest.Groups(group_id=group_id, topics=None if partitions is None else rows)
        if version >= _FIRST_FETCH_WITH_MEMBERS and identity.member_id and identity.generation_id >= 0:
            group.member_id, group.member_epoch = identity.member_id, identity.generation_id
        request.groups = [group]
        return request
    request.group_id = group_id
    request.topics = None
    if partitions is not None:
        old_class = OffsetFetchRequest.Topics
        request.topics = [old_class(name=name, partition_indexes=topics[name]) for name in topics]
    return request


def response_of_group(version: int, response: OffsetFetchResponse) -> OffsetFetchRow:
    """The part of a response with the one group that was requested."""
    return response.groups[0] if version >= _FIRST_FETCH_WITH_GROUPS else response


def committed_rows(response: OffsetFetchRow) -> list[CommittedRow]:
    """The offset of each partition in a response."""
    return [
        CommittedRow(
            TopicPartition(topic.name, row.partition_index),
            OffsetAndMetadata(row.committed_offset, row.metadata or "", row.committed_leader_epoch),
            row.error_code,
        )
        for topic in response.topics
        for row in topic.partitions
    ]
