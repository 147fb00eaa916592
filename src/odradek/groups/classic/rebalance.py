"""A classic rebalance: the members join, then the leader sends the assignment (sync)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from odradek.common.error_codes import ErrorCode
from odradek.groups.classic.group_transition import (
    GroupTransition,
    JoinTimer,
    SessionTimer,
    SyncTimer,
    WaitingSync,
)
from odradek.groups.classic_group import Group, GroupState, Member
from odradek.groups.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from odradek.groups.records import group_metadata
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

_MAY_REBALANCE = (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


def validate_member(group: Group, member_id: str, group_instance_id: str | None) -> Member:
    """The member that sent the request; raises if the member id or the instance id is not valid."""
    if group_instance_id is not None:
        holder = group.static_member(group_instance_id)
        if holder is None:
            raise UnknownMemberId(f"unknown instance id {group_instance_id}")
        if holder.member_id != member_id:
            raise FencedInstanceId(f"instance id {group_instance_id} now belongs to {holder.member_id}")
    if member_id not in group.members:
        raise UnknownMemberId(f"{member_id!r} is not a member of {group.group_id}")
    return group.members[member_id]


# Joining


def prepare_or_complete(transition: GroupTransition) -> None:
    """After a change of members: start a rebalance, or complete the one that was waiting for the change."""
    if transition.group.state in _MAY_REBALANCE:
        prepare(transition)
    else:
        maybe_complete(transition)


def prepare(transition: GroupTransition) -> None:
    """Start a rebalance: all members have to rejoin."""
    group = transition.group
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            unassigned = replace(member, assignment=b"")
            transition.update(unassigned)
            if member.is_awaiting_sync:
                transition.respond_to_sync(
                    unassigned, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
                )
    transition.stop_timer(SyncTimer(group.group_id))
    is_initial = group.state is GroupState.EMPTY
    delay_ms = transition.settings.initial_rebalance_delay_ms if is_initial else group.rebalance_timeout_ms
    transition.group = replace(
        transition.group.in_state(GroupState.PREPARING_REBALANCE, transition.now_ms),
        is_initial_rebalance=is_initial,
        has_new_member=False,
        initial_delay_left_ms=max(group.rebalance_timeout_ms - delay_ms, 0),
        pending_syncs=frozenset(),
    )
    if is_initial and delay_ms > 0:
        transition.start_timer(JoinTimer(group.group_id), delay_ms)
    elif is_initial or transition.group.has_all_joined:
        complete(transition)
    else:
        transition.start_timer(JoinTimer(group.group_id), delay_ms)


def maybe_complete(transition: GroupTransition) -> None:
    """Complete the join phase if all members have joined; an initial rebalance waits for its delay."""
    group = transition.group
    is_waiting = group.state is GroupState.PREPARING_REBALANCE and not group.is_initial_rebalance
    if is_waiting and group.has_all_joined:
        complete(transition)


def on_join_timeout(transition: GroupTransition) -> None:
    """Handle the join timer; an initial rebalance waits longer while new members join, up to a limit."""
    group = transition.group
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.is_initial_rebalance and group.has_new_member and group.initial_delay_left_ms > 0:
        delay_ms = min(transition.settings.initial_rebalance_delay_ms, group.initial_delay_left_ms)
        transition.group = replace(
            group, has_new_member=False, initial_delay_left_ms=group.initial_delay_left_ms - delay_ms
        )
        transition.start_timer(JoinTimer(group.group_id), delay_ms)
        return
    complete(transition)


def complete(transition: GroupTransition) -> None:
    """Complete the join phase with the members that have joined: the next generation begins."""
    group_id = transition.group.group_id
    transition.stop_timer(JoinTimer(group_id))
    for member in transition.group.members.values():
        # Static members are only removed when their session expires.
        if not member.is_awaiting_join and member.group_instance_id is None:
            transition.group = transition.group.without_member(member.member_id)
            transition.stop_timer(SessionTimer(group_id, member.member_id))
    if transition.group.members and not _elect_leader(transition):
        transition.start_timer(JoinTimer(group_id), transition.group.rebalance_timeout_ms)
        return
    transition.group = replace(
        transition.group, generation_id=transition.group.generation_id + 1, is_initial_rebalance=False
    )
    if transition.group.members:
        _begin_generation(transition)
    else:
        _become_empty(transition)


def _elect_leader(transition: GroupTransition) -> bool:
    """Choose a leader among the members that have joined; False if there is none."""
    leader = transition.group.members.get(transition.group.leader_id or "")
    if leader is not None and leader.is_awaiting_join:
        return True
    for member in transition.group.members.values():
        if member.is_awaiting_join:
            transition.group = replace(transition.group, leader_id=member.member_id)
            return True
    return False


def _become_empty(transition: GroupTransition) -> None:
    transition.group = replace(
        transition.group.in_state(GroupState.EMPTY, transition.now_ms), protocol_name=None, leader_id=None
    )
    transition.write(group_metadata(transition.group))


def _begin_generation(transition: GroupTransition) -> None:
    group = replace(transition.group, protocol_name=transition.group.select_protocol())
    transition.group = replace(
        group.in_state(GroupState.COMPLETING_REBALANCE, transition.now_ms),
        pending_syncs=frozenset(group.members),
    )
    for member in group.members.values():
        if member.is_awaiting_join:
            transition.respond_to_join(
                replace(member, is_new=False), joined(transition.group, member.member_id)
            )
        transition.start_session(member)
    transition.start_timer(SyncTimer(group.group_id), group.rebalance_timeout_ms)


def joined(group: Group, member_id: str) -> JoinGroupResponse:
    """The response for a member in the current generation; only the leader's lists the members."""
    is_leader = member_id == group.leader_id
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=members_for_leader(group) if is_leader else [],
    )


def members_for_leader(group: Group) -> list[JoinGroupResponse.Members]:
    """All members, with the metadata that the leader needs to assign."""
    return [
        JoinGroupResponse.Members(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


# Syncing


def sync(
    transition: GroupTransition, request: SyncGroupRequest
) -> tuple[SyncGroupResponse | None, Hashable | None]:
    """Handle a SyncGroup, the leader's with all assignments: the response, or the key to park under."""
    group = transition.group
    member = _validate_sync(group, request)
    if group.state is GroupState.EMPTY:
        raise UnknownMemberId(f"{group.group_id} has no members")
    if group.state is GroupState.PREPARING_REBALANCE:
        raise RebalanceInProgress
    transition.group = replace(group, pending_syncs=group.pending_syncs - {member.member_id})
    if not transition.group.pending_syncs:
        transition.stop_timer(SyncTimer(group.group_id))
    if group.state is GroupState.STABLE:
        transition.start_session(member)
        return _assigned(transition.group, member.assignment), None
    transition.update(replace(member, is_awaiting_sync=True))
    if member.member_id == group.leader_id:
        assignments = {given.member_id: given.assignment for given in request.assignments}
        _store_assignment(transition, assignments)
    return None, WaitingSync(group.group_id, member.member_id)


def _validate_sync(group: Group, request: SyncGroupRequest) -> Member:
    member = validate_member(group, request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise IllegalGeneration(request.generation_id, group.generation_id)
    for named, ours in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if named is not None and named != ours:
            raise InconsistentGroupProtocol(f"the group uses {ours}, not {named}")
    return member


def _store_assignment(transition: GroupTransition, assignments: dict[str, bytes]) -> None:
    """Store the leader's assignment: the group is stable, and waiting members get their responses."""
    for member in transition.group.members.values():
        transition.update(replace(member, assignment=assignments.get(member.member_id, b"")))
    transition.group = transition.group.in_state(GroupState.STABLE, transition.now_ms)
    transition.write(group_metadata(transition.group))
    for member in transition.group.members.values():
        if member.is_awaiting_sync:
            transition.respond_to_sync(member, _assigned(transition.group, member.assignment))
            transition.start_session(member)


def _assigned(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def on_sync_timeout(transition: GroupTransition) -> None:
    """Handle the sync timer: remove the members that did not sync, and rebalance the others."""
    group = transition.group
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_syncs:
        return
    for member_id in sorted(group.pending_syncs):
        transition.group = transition.group.without_member(member_id)
        transition.stop_timer(SessionTimer(group.group_id, member_id))
    prepare(transition)


def heartbeat(transition: GroupTransition, request: HeartbeatRequest) -> HeartbeatResponse:
    """Handle a heartbeat; REBALANCE_IN_PROGRESS if the member has to rejoin."""
    member = validate_member(transition.group, request.member_id, request.group_instance_id)
    if request.generation_id != transition.group.generation_id:
        raise IllegalGeneration(request.generation_id, transition.group.generation_id)
    if transition.group.state is GroupState.EMPTY:
        raise UnknownMemberId(f"{transition.group.group_id} has no members")
    transition.start_session(member)
    is_rebalancing = transition.group.state is GroupState.PREPARING_REBALANCE
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE)
