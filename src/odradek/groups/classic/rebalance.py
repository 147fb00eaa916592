"""A classic rebalance: members find each other (join), the leader hands out the work (sync)."""

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
    """The member that speaks, if it still is who it says."""
    if group_instance_id is not None:
        holder = group.static_member(group_instance_id)
        if holder is None:
            raise UnknownMemberId(f"nobody has the instance id {group_instance_id}")
        if holder.member_id != member_id:
            raise FencedInstanceId(f"{holder.member_id} has taken over the instance id {group_instance_id}")
    if member_id not in group.members:
        raise UnknownMemberId(f"{member_id!r} is no member of {group.group_id}")
    return group.members[member_id]


# Joining


def prepare_or_complete(turn: GroupTransition) -> None:
    """Somebody came, went or changed: begin a rebalance, or end the one that waited for just that."""
    if turn.group.state in _MAY_REBALANCE:
        prepare(turn)
    else:
        maybe_complete(turn)


def prepare(turn: GroupTransition) -> None:
    """Begin a rebalance: everybody has to join again."""
    group = turn.group
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            unassigned = replace(member, assignment=b"")
            turn.update(unassigned)
            if member.is_awaiting_sync:
                turn.answer_sync(unassigned, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    turn.stop_timer(SyncTimer(group.group_id))
    is_initial = group.state is GroupState.EMPTY
    delay_ms = turn.settings.initial_rebalance_delay_ms if is_initial else group.rebalance_timeout_ms
    turn.group = replace(
        turn.group.in_state(GroupState.PREPARING_REBALANCE, turn.now_ms),
        is_initial_rebalance=is_initial,
        has_new_member=False,
        initial_delay_left_ms=max(group.rebalance_timeout_ms - delay_ms, 0),
        pending_syncs=frozenset(),
    )
    if is_initial and delay_ms > 0:
        turn.start_timer(JoinTimer(group.group_id), delay_ms)
    elif is_initial or turn.group.has_all_joined:
        complete(turn)
    else:
        turn.start_timer(JoinTimer(group.group_id), delay_ms)


def maybe_complete(turn: GroupTransition) -> None:
    """End the join phase if nobody is missing; the first one of a group waits out its delay."""
    group = turn.group
    is_waiting = group.state is GroupState.PREPARING_REBALANCE and not group.is_initial_rebalance
    if is_waiting and group.has_all_joined:
        complete(turn)


def join_time_over(turn: GroupTransition) -> None:
    """The join timer rang; an initial rebalance waits on while members keep coming, for a while."""
    group = turn.group
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.is_initial_rebalance and group.has_new_member and group.initial_delay_left_ms > 0:
        delay_ms = min(turn.settings.initial_rebalance_delay_ms, group.initial_delay_left_ms)
        turn.group = replace(
            group, has_new_member=False, initial_delay_left_ms=group.initial_delay_left_ms - delay_ms
        )
        turn.start_timer(JoinTimer(group.group_id), delay_ms)
        return
    complete(turn)


def complete(turn: GroupTransition) -> None:
    """End the join phase with those who came: the next generation begins."""
    group_id = turn.group.group_id
    turn.stop_timer(JoinTimer(group_id))
    for member in turn.group.members.values():
        # Static members are only dropped by the end of their session.
        if not member.is_awaiting_join and member.group_instance_id is None:
            turn.group = turn.group.without_member(member.member_id)
            turn.stop_timer(SessionTimer(group_id, member.member_id))
    if turn.group.members and not _elect_leader(turn):
        turn.start_timer(JoinTimer(group_id), turn.group.rebalance_timeout_ms)
        return
    turn.group = replace(turn.group, generation_id=turn.group.generation_id + 1, is_initial_rebalance=False)
    if turn.group.members:
        _begin_generation(turn)
    else:
        _become_empty(turn)


def _elect_leader(turn: GroupTransition) -> bool:
    """Let somebody lead who is here; False if nobody is."""
    leader = turn.group.members.get(turn.group.leader_id or "")
    if leader is not None and leader.is_awaiting_join:
        return True
    for member in turn.group.members.values():
        if member.is_awaiting_join:
            turn.group = replace(turn.group, leader_id=member.member_id)
            return True
    return False


def _become_empty(turn: GroupTransition) -> None:
    turn.group = replace(
        turn.group.in_state(GroupState.EMPTY, turn.now_ms), protocol_name=None, leader_id=None
    )
    turn.write(group_metadata(turn.group))


def _begin_generation(turn: GroupTransition) -> None:
    group = replace(turn.group, protocol_name=turn.group.select_protocol())
    turn.group = replace(
        group.in_state(GroupState.COMPLETING_REBALANCE, turn.now_ms), pending_syncs=frozenset(group.members)
    )
    for member in group.members.values():
        if member.is_awaiting_join:
            turn.answer_join(replace(member, is_new=False), joined(turn.group, member.member_id))
        turn.start_session(member)
    turn.start_timer(SyncTimer(group.group_id), group.rebalance_timeout_ms)


def joined(group: Group, member_id: str) -> JoinGroupResponse:
    """The current generation as this member is told; only the leader hears of the others."""
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
    """Everybody with the metadata that the leader assigns by."""
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
    turn: GroupTransition, request: SyncGroupRequest
) -> tuple[SyncGroupResponse | None, Hashable | None]:
    """A member asks for its assignment, the leader brings them all: the answer, or where to wait for it."""
    group = turn.group
    member = _validate_sync(group, request)
    if group.state is GroupState.EMPTY:
        raise UnknownMemberId(f"{group.group_id} has no members")
    if group.state is GroupState.PREPARING_REBALANCE:
        raise RebalanceInProgress
    turn.group = replace(group, pending_syncs=group.pending_syncs - {member.member_id})
    if not turn.group.pending_syncs:
        turn.stop_timer(SyncTimer(group.group_id))
    if group.state is GroupState.STABLE:
        turn.start_session(member)
        return _assigned(turn.group, member.assignment), None
    turn.update(replace(member, is_awaiting_sync=True))
    if member.member_id == group.leader_id:
        assignments = {given.member_id: given.assignment for given in request.assignments}
        _hand_out(turn, assignments)
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
            raise InconsistentGroupProtocol(f"the group goes by {ours}, not by {named}")
    return member


def _hand_out(turn: GroupTransition, assignments: dict[str, bytes]) -> None:
    """The leader has assigned: the group is stable, and everybody who waits is told."""
    for member in turn.group.members.values():
        turn.update(replace(member, assignment=assignments.get(member.member_id, b"")))
    turn.group = turn.group.in_state(GroupState.STABLE, turn.now_ms)
    turn.write(group_metadata(turn.group))
    for member in turn.group.members.values():
        if member.is_awaiting_sync:
            turn.answer_sync(member, _assigned(turn.group, member.assignment))
            turn.start_session(member)


def _assigned(group: Group, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def sync_time_over(turn: GroupTransition) -> None:
    """The sync timer rang: members that never asked for their assignment go, the others begin anew."""
    group = turn.group
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_syncs:
        return
    for member_id in sorted(group.pending_syncs):
        turn.group = turn.group.without_member(member_id)
        turn.stop_timer(SessionTimer(group.group_id, member_id))
    prepare(turn)


def heartbeat(turn: GroupTransition, request: HeartbeatRequest) -> HeartbeatResponse:
    """A member is alive; it is told when it has to join again."""
    member = validate_member(turn.group, request.member_id, request.group_instance_id)
    if request.generation_id != turn.group.generation_id:
        raise IllegalGeneration(request.generation_id, turn.group.generation_id)
    if turn.group.state is GroupState.EMPTY:
        raise UnknownMemberId(f"{turn.group.group_id} has no members")
    turn.start_session(member)
    is_rebalancing = turn.group.state is GroupState.PREPARING_REBALANCE
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if is_rebalancing else ErrorCode.NONE)
