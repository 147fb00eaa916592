"""The requests of the classic protocol, each as one decision on the state of a shard."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import Result
from odradek.groups import membership, rebalance
from odradek.groups.errors import UnknownMemberId
from odradek.groups.group import UNKNOWN_MEMBER_ID, Group
from odradek.groups.membership import Joining
from odradek.groups.records import group_metadata
from odradek.groups.state import GroupsState
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
    """Somebody joins; a group comes into being by its first member."""
    settings = state.settings
    if not settings.min_session_timeout_ms <= joining.session_timeout_ms <= settings.max_session_timeout_ms:
        raise KafkaError(
            f"a session of {joining.session_timeout_ms} ms", error_code=ErrorCode.INVALID_SESSION_TIMEOUT
        )
    group = state.find(group_id)
    is_new = group is None
    if group is None:
        if joining.member_id != UNKNOWN_MEMBER_ID:
            raise UnknownMemberId(f"there is no group {group_id}")
        group = Group(group_id, state_timestamp_ms=now_ms)
    turn = state.turn(group, now_ms)
    if is_new:
        # Written down at once, so that the next coordinator knows the group even if it never got stable.
        turn.write(group_metadata(group))
    response, parks_under = membership.join(turn, joining)
    return turn.result(state.keep, response, parks_under)


def sync(state: GroupsState, request: SyncGroupRequest, now_ms: int) -> Result[SyncGroupResponse]:
    """A member asks for its assignment; the leader brings everybody's."""
    turn = state.turn(_of_member(state, request.group_id), now_ms)
    response, parks_under = rebalance.sync(turn, request)
    return turn.result(state.keep, response, parks_under)


def heartbeat(state: GroupsState, request: HeartbeatRequest, now_ms: int) -> Result[HeartbeatResponse]:
    """A member is alive."""
    turn = state.turn(_of_member(state, request.group_id), now_ms)
    return turn.result(state.keep, rebalance.heartbeat(turn, request))


def leave(state: GroupsState, request: LeaveGroupRequest, now_ms: int) -> Result[LeaveGroupResponse]:
    """Members go; each has its own verdict."""
    turn = state.turn(_of_member(state, request.group_id), now_ms)
    rows = []
    for leaving in request.members:
        row = _Left(member_id=leaving.member_id, group_instance_id=leaving.group_instance_id)
        try:
            membership.leave(turn, leaving.member_id, leaving.group_instance_id)
        except KafkaError as error:
            row.error_code = error.error_code
        rows.append(row)
    return turn.result(state.keep, LeaveGroupResponse(members=rows))


def _of_member(state: GroupsState, group_id: str) -> Group:
    """The group that a member speaks of; if it is gone, so is its member."""
    group = state.find(group_id)
    if group is None:
        raise UnknownMemberId(f"there is no group {group_id}")
    return group
