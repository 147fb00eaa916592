"""Commits, fetches and deletes offsets: operations on the state of a shard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.result import CoordinatorRecord, ProducerStamp, Result, StartTimer, StopTimer
from odradek.groups.classic.group_transition import SessionTimer
from odradek.groups.classic.rebalance import validate_member
from odradek.groups.classic_group import (
    CONSUMER_PROTOCOL_TYPE,
    NO_GENERATION,
    UNKNOWN_MEMBER_ID,
    Group,
    GroupState,
)
from odradek.groups.committed import NOT_COMMITTED, OffsetAndMetadata
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember
from odradek.groups.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    NonEmptyGroup,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownMemberId,
)
from odradek.groups.records import offset_commit, offset_tombstone
from odradek.groups.state import GroupsState

PartitionErrors = Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class Commit:
    """An OffsetCommit request for existing topics; without a member id it comes from outside the group."""

    group_id: str
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    generation_id: int = NO_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    # Version 9 and later have an error code for an unknown group.
    knows_group_errors: bool = True


@dataclass(frozen=True, slots=True)
class TransactionalCommit:
    """A TxnOffsetCommit request: the offsets take effect when the producer's transaction is committed."""

    commit: Commit
    producer: ProducerStamp


class FetchedOffset(NamedTuple):
    """A committed offset, or an error code."""

    committed: OffsetAndMetadata
    error_code: ErrorCode = ErrorCode.NONE


NOTHING_COMMITTED = FetchedOffset(NOT_COMMITTED)


def commit(state: GroupsState, request: Commit, now_ms: int) -> Result[PartitionErrors]:
    """Write the offsets; those with too much metadata are rejected."""
    timers = _validate_commit(state, request)
    verdicts, records = _commit_records(state, request)
    return Result(response=verdicts, records=records, timers=timers)


def commit_in_transaction(state: GroupsState, request: TransactionalCommit) -> Result[PartitionErrors]:
    """Write the offsets as part of the transaction; those with too much metadata are rejected."""
    _validate_transactional(state, request.commit)
    verdicts, records = _commit_records(state, request.commit)
    return Result(response=verdicts, records=records, producer=request.producer)


def _commit_records(
    state: GroupsState, request: Commit
) -> tuple[PartitionErrors, tuple[CoordinatorRecord, ...]]:
    limit = state.settings.offset_metadata_max_bytes
    verdicts: dict[TopicPartition, ErrorCode] = {}
    records = []
    for partition, committed in request.offsets.items():
        is_too_long = len(committed.metadata) > limit
        verdicts[partition] = ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_long else ErrorCode.NONE
        if not is_too_long:
            records.append(offset_commit(request.group_id, partition, committed))
    return verdicts, tuple(records)


def _validate_transactional(state: GroupsState, request: Commit) -> None:
    """Raise unless the member, if one is named, is in that generation (KIP-447); renews no session."""
    group = state.find(request.group_id)
    names_member = request.member_id != UNKNOWN_MEMBER_ID or request.group_instance_id is not None
    if group is None:
        if request.generation_id >= 0:
            raise IllegalGeneration(request.generation_id, NO_GENERATION)
    elif isinstance(group, ConsumerGroup):
        if names_member or request.generation_id >= 0:
            _validate_consumer_commit(state, group, request)
    elif request.generation_id >= 0 or (names_member and group.state is not GroupState.EMPTY):
        validate_member(group, request.member_id, request.group_instance_id)
        if request.generation_id != group.generation_id:
            raise IllegalGeneration(request.generation_id, group.generation_id)


def _validate_commit(state: GroupsState, request: Commit) -> tuple[StartTimer | StopTimer, ...]:
    """Raise unless the commit is allowed; the timer changes that renew the member's session."""
    group = state.find(request.group_id)
    if group is None:
        if request.generation_id < 0:
            return ()
        if request.knows_group_errors:
            raise GroupIdNotFound(f"Group {request.group_id} not found.")
        raise IllegalGeneration(request.generation_id, NO_GENERATION)
    if isinstance(group, ConsumerGroup):
        return _validate_consumer_commit(state, group, request)
    return _validate_classic_commit(group, request)


def _validate_consumer_commit(
    state: GroupsState, group: ConsumerGroup, request: Commit
) -> tuple[StartTimer | StopTimer, ...]:
    epoch = request.generation_id
    if epoch < 0 and not group.members:
        return ()
    member = group.members.get(request.member_id)
    if member is None:
        raise UnknownMemberId(f"{request.member_id!r} is not a member of {request.group_id}")
    if member.classic is not None:
        if epoch != member.member_epoch:
            raise IllegalGeneration(epoch, member.member_epoch)
        return ()
    if not request.knows_group_errors:
        raise KafkaError("a member epoch needs version 9", error_code=ErrorCode.UNSUPPORTED_VERSION)
    if epoch != member.member_epoch and not _had_all_since(state, member, request):
        raise StaleMemberEpoch(epoch, member.member_epoch)
    return ()


def _had_all_since(state: GroupsState, member: ConsumerMember, request: Commit) -> bool:
    """Whether a commit in an older epoch is valid: the member has owned all these partitions since then."""
    if request.generation_id > member.member_epoch:
        return False
    for partition in request.offsets:
        info = state.topics.find(partition.topic)
        since = None if info is None else member.assigned.get((info.topic_id, partition.partition))
        if since is None or since > request.generation_id:
            return False
    return True


def _validate_classic_commit(group: Group, request: Commit) -> tuple[StartTimer | StopTimer, ...]:
    is_empty = group.state is GroupState.EMPTY
    if request.generation_id < 0 and is_empty:
        # An administrator, or a consumer without group management.
        return ()
    names_member = request.member_id != UNKNOWN_MEMBER_ID or request.group_instance_id is not None
    if request.generation_id < 0 and not names_member:
        raise UnknownMemberId("while a group has members, only they may commit")
    member = validate_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise IllegalGeneration(request.generation_id, group.generation_id)
    if group.state is GroupState.COMPLETING_REBALANCE:
        # It knows the generation, so that the commit may be for partitions of another member by now.
        raise RebalanceInProgress
    return (StartTimer(SessionTimer(group.group_id, member.member_id), member.session_timeout_ms),)


def check_member(state: GroupsState, group_id: str, member_id: str | None, member_epoch: int) -> None:
    """Raise unless the member of a consumer group is in that epoch."""
    group = state.find(group_id)
    if not isinstance(group, ConsumerGroup) or (member_id is None and member_epoch < 0):
        return
    member = group.members.get(member_id or UNKNOWN_MEMBER_ID)
    if member is None:
        raise UnknownMemberId(f"{member_id!r} is not a member of {group_id}")
    if member_epoch != member.member_epoch:
        raise StaleMemberEpoch(member_epoch, member.member_epoch)


def fetch(
    state: GroupsState, group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool
) -> dict[TopicPartition, FetchedOffset]:
    """The committed offsets of these partitions, or of all that have one.

    With `require_stable` offsets that an open transaction may change get UNSTABLE_OFFSET_COMMIT.
    """
    committed = state.offsets.of(group_id)
    found: dict[TopicPartition, FetchedOffset] = {}
    for partition in committed if partitions is None else partitions:
        if require_stable and state.offsets.is_pending(group_id, partition):
            found[partition] = FetchedOffset(NOT_COMMITTED, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        else:
            offset = committed.get(partition)
            found[partition] = NOTHING_COMMITTED if offset is None else FetchedOffset(offset)
    return found


def delete_partitions(state: GroupsState, partitions: Collection[TopicPartition]) -> Result[None]:
    """Delete the offsets of deleted partitions in all groups, those of open transactions too."""
    records = [
        offset_tombstone(group_id, partition)
        for group_id in state.offsets
        for partition in state.offsets.partitions_of(group_id)
        if partition in partitions
    ]
    return Result(records=tuple(records))


def delete(
    state: GroupsState, group_id: str, partitions: Iterable[TopicPartition]
) -> Result[PartitionErrors]:
    """Delete offsets of topics that the group does not subscribe to, those of open transactions too."""
    group = state.get(group_id)
    if isinstance(group, Group) and group.members and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise NonEmptyGroup(f"{group_id} has members with unknown subscriptions")
    known = state.offsets.partitions_of(group_id)
    verdicts: dict[TopicPartition, ErrorCode] = {}
    records = []
    for partition in partitions:
        is_read = group.is_subscribed_to(partition.topic)
        verdicts[partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
        if not is_read and partition in known:
            records.append(offset_tombstone(group_id, partition))
    return Result(response=verdicts, records=tuple(records))
