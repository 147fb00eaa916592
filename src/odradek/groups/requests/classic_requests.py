"""The requests of the classic protocol, each handled as one operation on the state of a shard."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import Result
from odradek.groups.classic import membership, rebalance
from odradek.groups.classic.membership import Joining
from odradek.groups.classic_group import UNKNOWN_MEMBER_ID, Group
from odradek.groups.consumer import classic_in_consumer, consumer_records, migration
from odradek.groups.consumer.consumer_group import ConsumerGroup
from odradek.groups.errors import UnknownMemberId
from odradek.groups.records import group_metadata
from odradek.groups.state import AnyGroup, GroupsState
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_Left = LeaveGroupResponse.Members


def join(state: GroupsState, group_id: str, joining: Joining, now_ms: int) -> Result[JoinGroupResponse]:
    """Handle a JoinGroup; the first member creates the group."""
    settings = state.settings
    if not settings.min_session_timeout_ms <= joining.session_timeout_ms <= settings.max_session_timeout_ms:
        raise KafkaError(
            f"session timeout {joining.session_timeout_ms} ms is out of range",
            error_code=ErrorCode.INVALID_SESSION_TIMEOUT,
        )
    known = state.find(group_id)
    if isinstance(known, ConsumerGroup) and known.members:
        return _join_consumer_group(state, known, joining, now_ms)
    if not isinstance(known, Group) and joining.member_id != UNKNOWN_MEMBER_ID:
        raise UnknownMemberId(f"there is no group {group_id}")
    group = known if isinstance(known, Group) else Group(group_id, state_timestamp_ms=now_ms)
    transition = state.transition(group, now_ms)
    if isinstance(known, ConsumerGroup):
        # It has no members, so that it can become a classic group.
        for change in consumer_records.group_tombstones(known):
            transition.write(change.record())
    if known is not group:
        # Written at once, so that the next coordinator has the group even if it never became stable.
        transition.write(group_metadata(group))
    response, parked_under = membership.join(transition, joining)
    return transition.result(state.keep, response, parked_under)


def _join_consumer_group(
    state: GroupsState, group: ConsumerGroup, joining: Joining, now_ms: int
) -> Result[JoinGroupResponse]:
    transition = state.consumer_transition(group, now_ms)
    response = classic_in_consumer.join(transition, joining)
    if response.error_code or not migration.may_downgrade(transition.group, state.settings):
        return transition.result(state.keep, response)
    # The last member of the consumer protocol was a static one that was replaced by a classic one.
    downgraded = migration.downgrade(transition.group, state.settings, state.topics, now_ms)
    downgraded.write_before(transition.records)
    response.generation_id = downgraded.group.generation_id
    return downgraded.result(state.keep, response)


def sync(state: GroupsState, request: SyncGroupRequest, now_ms: int) -> Result[SyncGroupResponse]:
    """Handle a SyncGroup."""
    group = _of_member(state, request.group_id)
    if isinstance(group, ConsumerGroup):
        consumer_transition = state.consumer_transition(group, now_ms)
        return consumer_transition.result(state.keep, classic_in_consumer.sync(consumer_transition, request))
    transition = state.transition(group, now_ms)
    response, parked_under = rebalance.sync(transition, request)
    return transition.result(state.keep, response, parked_under)


def heartbeat(state: GroupsState, request: HeartbeatRequest, now_ms: int) -> Result[HeartbeatResponse]:
    """Handle a heartbeat."""
    group = _of_member(state, request.group_id)
    if isinstance(group, ConsumerGroup):
        consumer_transition = state.consumer_transition(group, now_ms)
        return consumer_transition.result(
            state.keep, classic_in_consumer.heartbeat(consumer_transition, request)
        )
    transition = state.transition(group, now_ms)
    return transition.result(state.keep, rebalance.heartbeat(transition, request))


def leave(state: GroupsState, request: LeaveGroupRequest, now_ms: int) -> Result[LeaveGroupResponse]:
    """Remove members; each has its own error code."""
    group = state.find(request.group_id)
    if isinstance(group, ConsumerGroup):
        gone, response = classic_in_consumer.leaving(group, request)
        return state.remove(group, gone, now_ms, response) if gone else Result(response)
    if group is None:
        return Result(LeaveGroupResponse(members=[_not_here(leaving) for leaving in request.members]))
    transition = state.transition(group, now_ms)
    rows = []
    for leaving in request.members:
        row = _Left(member_id=leaving.member_id, group_instance_id=leaving.group_instance_id)
        try:
            membership.leave(transition, leaving.member_id, leaving.group_instance_id)
        except KafkaError as error:
            row.error_code = error.error_code
        rows.append(row)
    return transition.result(state.keep, LeaveGroupResponse(members=rows))


def _not_here(leaving: LeaveGroupRequest.Members) -> _Left:
    return _Left(
        member_id=leaving.member_id,
        group_instance_id=leaving.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )


def _of_member(state: GroupsState, group_id: str) -> AnyGroup:
    """The group of a member's request; without a group the member is unknown."""
    group = state.find(group_id)
    if group is None:
        raise UnknownMemberId(f"there is no group {group_id}")
    return group
