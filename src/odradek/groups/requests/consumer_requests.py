"""The requests of the consumer protocol, each handled as one operation on the state of a shard."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import Result
from odradek.groups.classic_group import Group
from odradek.groups.consumer import consumer_protocol, migration
from odradek.groups.consumer.consumer_group import JOIN_EPOCH, LEAVE_STATIC_EPOCH, ConsumerGroup
from odradek.groups.consumer.consumer_protocol import ConsumerHeartbeat
from odradek.groups.consumer.consumer_transition import ConsumerGroupTransition
from odradek.groups.errors import GroupIdNotFound
from odradek.groups.records import group_tombstone
from odradek.groups.state import GroupsState
from odradek.protocol.messages import ConsumerGroupHeartbeatResponse


def heartbeat(
    state: GroupsState, group_id: str, request: ConsumerHeartbeat, now_ms: int
) -> Result[ConsumerGroupHeartbeatResponse]:
    """Handle a heartbeat of a member that joins, stays or leaves."""
    if not state.settings.is_consumer_protocol_enabled:
        raise KafkaError("the consumer protocol is disabled", error_code=ErrorCode.UNSUPPORTED_VERSION)
    consumer_protocol.check(group_id, request, state.settings.consumer_assignors)
    if request.is_leaving:
        return _leave(state, group_id, request, now_ms)
    transition = _transition_for(state, group_id, request, now_ms)
    response = consumer_protocol.heartbeat(transition, request)
    return transition.result(state.keep, response)


def _transition_for(
    state: GroupsState, group_id: str, request: ConsumerHeartbeat, now_ms: int
) -> ConsumerGroupTransition:
    """The member's group; a joining member creates it, or upgrades a classic one."""
    group = state.find(group_id)
    if isinstance(group, ConsumerGroup):
        return state.consumer_transition(group, now_ms)
    if request.member_epoch != JOIN_EPOCH:
        raise GroupIdNotFound(f"Group {group_id} not found.")
    if isinstance(group, Group) and group.members:
        return migration.upgrade(group, state.settings_of(group_id), state.topics, now_ms)
    transition = state.consumer_transition(ConsumerGroup(group_id), now_ms)
    if group is not None:
        transition.write_before([group_tombstone(group_id)])
    return transition


def _leave(
    state: GroupsState, group_id: str, request: ConsumerHeartbeat, now_ms: int
) -> Result[ConsumerGroupHeartbeatResponse]:
    group = state.find(group_id)
    if not isinstance(group, ConsumerGroup):
        raise GroupIdNotFound(f"Group {group_id} not found.")
    member = consumer_protocol.leaving_member(group, request)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEAVE_STATIC_EPOCH:
        transition = state.consumer_transition(group, now_ms)
        consumer_protocol.leave_temporarily(transition, member)
        return transition.result(state.keep, response)
    return state.remove(group, [member.member_id], now_ms, response)
