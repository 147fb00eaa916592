"""Classic members in a consumer group, while the group migrates from one protocol to the other.

The coordinator acts as their leader: JoinGroup returns an epoch as the generation, SyncGroup the assignment
in it, and a heartbeat asks them to rejoin whenever they can get closer to the target assignment.
"""

from __future__ import annotations

from dataclasses import replace

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.groups.classic.membership import Joining
from odradek.groups.classic_group import CONSUMER_PROTOCOL_TYPE, UNKNOWN_MEMBER_ID
from odradek.groups.consumer.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember, MemberState
from odradek.groups.consumer.consumer_protocol import (
    bring_up_to_date,
    check_group_size,
    replace_static,
    static_member,
    step,
)
from odradek.groups.consumer.consumer_transition import ConsumerGroupTransition, MemberSyncTimer, RejoinTimer
from odradek.groups.consumer.embedded_protocol import owned_partitions, read_subscription, write_assignment
from odradek.groups.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)


def join(transition: ConsumerGroupTransition, joining: Joining) -> JoinGroupResponse:
    """Handle a JoinGroup of a classic member."""
    _check_protocols(transition.group, joining)
    is_unknown = joining.member_id == UNKNOWN_MEMBER_ID
    member_id = joining.new_member_id if is_unknown else joining.member_id
    check_group_size(transition, member_id)
    if is_unknown and joining.group_instance_id is None and joining.requires_known_member_id:
        return JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id, protocol_name=None
        )
    subscription = read_subscription(joining.protocols[0][1])
    if subscription is None:
        raise InconsistentGroupProtocol("the metadata of the consumer cannot be read")
    member = _find_or_make(transition, joining, member_id, is_unknown)
    updated = replace(
        member,
        instance_id=joining.group_instance_id or member.instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        topics=frozenset(subscription.topics),
        server_assignor=None,
        classic=ClassicMetadata(joining.session_timeout_ms, joining.protocols),
    )
    bring_up_to_date(transition, member, updated)
    now = step(
        transition, transition.group.members[member_id], owned_partitions(subscription, transition.topics)
    )
    group_id = transition.group.group_id
    transition.stop_timer(RejoinTimer(group_id, member_id))
    transition.start_session(now)
    transition.start_timer(MemberSyncTimer(group_id, member_id), joining.rebalance_timeout_ms)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=now.member_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=joining.protocols[0][0],
    )


def _check_protocols(group: ConsumerGroup, joining: Joining) -> None:
    offered = {name for name, _ in joining.protocols}
    for member in group.members.values():
        if member.classic is not None and member.member_id != joining.member_id:
            offered &= {name for name, _ in member.classic.protocols}
    if joining.protocol_type != CONSUMER_PROTOCOL_TYPE or not offered:
        raise InconsistentGroupProtocol(f"{group.group_id} has no protocol in common with the new member")


def _find_or_make(
    transition: ConsumerGroupTransition, joining: Joining, member_id: str, is_unknown: bool
) -> ConsumerMember:
    instance_id = joining.group_instance_id
    if instance_id is None:
        return transition.group.members.get(member_id) or ConsumerMember(member_id)
    if not is_unknown:
        return static_member(transition.group, member_id, instance_id)
    holder = transition.group.static_member(instance_id)
    return ConsumerMember(member_id) if holder is None else replace_static(transition, holder, member_id)


def sync(transition: ConsumerGroupTransition, request: SyncGroupRequest) -> SyncGroupResponse:
    """Return the member's assignment in its epoch."""
    member, classic = _validate(
        transition.group, request.member_id, request.group_instance_id, request.generation_id
    )
    names = {name for name, _ in classic.protocols}
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or (
        request.protocol_name is not None and request.protocol_name not in names
    ):
        raise InconsistentGroupProtocol(f"{request.protocol_type} {request.protocol_name}")
    is_behind = transition.group.group_epoch > member.member_epoch
    if is_behind and member.state is not MemberState.UNREVOKED_PARTITIONS:
        raise RebalanceInProgress
    transition.stop_timer(MemberSyncTimer(transition.group.group_id, member.member_id))
    transition.start_session(member)
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(member.assigned, classic.protocols[0][1], transition.topics),
    )


def heartbeat(transition: ConsumerGroupTransition, request: HeartbeatRequest) -> HeartbeatResponse:
    """Handle a heartbeat; REBALANCE_IN_PROGRESS if the member should rejoin."""
    group = transition.group
    member, _ = _validate(group, request.member_id, request.group_instance_id, request.generation_id)
    transition.start_session(member)
    if not _should_rejoin(group, member):
        return HeartbeatResponse()
    transition.start_timer_unless_running(
        RejoinTimer(group.group_id, member.member_id), member.rebalance_timeout_ms
    )
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def _should_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.group_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    missing = group.targets.get(member.member_id, frozenset()) - member.assigned.keys()
    return not missing & group.held_by_others(member.member_id)


def leaving(group: ConsumerGroup, request: LeaveGroupRequest) -> tuple[list[str], LeaveGroupResponse]:
    """Handle a LeaveGroup for members of either protocol: the members that leave, and the response."""
    rows, gone = [], []
    for leaving in request.members:
        row = LeaveGroupResponse.Members(
            member_id=leaving.member_id, group_instance_id=leaving.group_instance_id
        )
        try:
            gone.append(_leaving(group, leaving.member_id, leaving.group_instance_id).member_id)
        except KafkaError as error:
            row.error_code = error.error_code
        rows.append(row)
    return gone, LeaveGroupResponse(members=rows)


def _leaving(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is not None and member_id == UNKNOWN_MEMBER_ID:
        holder = group.static_member(instance_id)
        member_id = UNKNOWN_MEMBER_ID if holder is None else holder.member_id
    return _member(group, member_id, instance_id)


def _validate(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[ConsumerMember, ClassicMetadata]:
    member, classic = _classic_member(group, member_id, instance_id)
    if generation_id != member.member_epoch:
        raise IllegalGeneration(generation_id, member.member_epoch)
    return member, classic


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> tuple[ConsumerMember, ClassicMetadata]:
    member = _member(group, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId(f"{member_id!r} does not use the classic protocol")
    return member, member.classic


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is not None:
        return static_member(group, member_id, instance_id)
    if member_id not in group.members:
        raise UnknownMemberId(f"{member_id!r} is not a member of {group.group_id}")
    return group.members[member_id]
