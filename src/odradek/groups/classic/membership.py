"""Membership of a classic group: joining, leaving, removal.

| who joins | what happens |
| --- | --- |
| a dynamic member without an id | gets an id and joins again with it (KIP-394); old clients join at once |
| a dynamic member with an id it was given | joins |
| a static member without an id | joins, or replaces the member with its instance id (KIP-345) |
| a member of the group | stays in the current generation if nothing changed, else the group rebalances |
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from types import MappingProxyType

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.groups.classic.group_transition import GroupTransition, SessionTimer, WaitingJoin
from odradek.groups.classic.rebalance import (
    joined,
    maybe_complete,
    members_for_leader,
    prepare,
    prepare_or_complete,
    validate_member,
)
from odradek.groups.classic_group import UNKNOWN_MEMBER_ID, Group, GroupState, Member, Protocols
from odradek.groups.errors import InconsistentGroupProtocol, UnknownMemberId
from odradek.groups.records import group_metadata
from odradek.protocol.messages import JoinGroupResponse, SyncGroupResponse

JoinResult = tuple[JoinGroupResponse | None, Hashable | None]
"""The response, or the key to park the request under."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup request, with what its connection and version add."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    # The id that the member gets if it has none.
    new_member_id: str
    # Version 4 and later: the id is returned first, so that a lost response leaves no unknown member behind.
    requires_known_member_id: bool = True
    # Version 9 and later: the leader can be asked to skip the assignment.
    can_skip_assignment: bool = True


def join(transition: GroupTransition, joining: Joining) -> JoinResult:
    """Handle a JoinGroup."""
    group = transition.group
    if not _has_capacity(transition, joining.member_id):
        raise KafkaError(
            f"{group.group_id} has {len(group.members)} members", error_code=ErrorCode.GROUP_MAX_SIZE_REACHED
        )
    if not group.supports(joining.protocol_type, (name for name, _ in joining.protocols)):
        raise InconsistentGroupProtocol(f"{group.group_id} has no protocol in common with the new member")
    if joining.member_id == UNKNOWN_MEMBER_ID:
        return _join_without_id(transition, joining)
    if joining.member_id in group.pending_members:
        return _add(transition, joining, joining.member_id)
    return _join_again(transition, joining)


def _has_capacity(transition: GroupTransition, member_id: str) -> bool:
    group, max_size = transition.group, transition.settings.max_size
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        # Members that have not rejoined may be replaced by those that have.
        joined_count = sum(one.is_awaiting_join for one in group.members.values())
        return (member is not None and member.is_awaiting_join) or joined_count < max_size
    return member is not None or len(group.members) < max_size


def _join_without_id(transition: GroupTransition, joining: Joining) -> JoinResult:
    if joining.group_instance_id is not None:
        holder = transition.group.static_member(joining.group_instance_id)
        if holder is not None:
            return _take_over(transition, joining, holder)
        return _add(transition, joining, joining.new_member_id)
    if joining.requires_known_member_id:
        return _assign_member_id(transition, joining), None
    return _add(transition, joining, joining.new_member_id)


def _assign_member_id(transition: GroupTransition, joining: Joining) -> JoinGroupResponse:
    group = transition.group
    transition.group = replace(group, pending_members=group.pending_members | {joining.new_member_id})
    transition.start_timer(SessionTimer(group.group_id, joining.new_member_id), joining.session_timeout_ms)
    return JoinGroupResponse(
        error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=joining.new_member_id, protocol_name=None
    )


def _add(transition: GroupTransition, joining: Joining, member_id: str) -> JoinResult:
    """Add a new member and rebalance, or continue the current rebalance."""
    member = Member(
        member_id=member_id,
        group_instance_id=joining.group_instance_id,
        client_id=joining.client_id,
        client_host=joining.client_host,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=joining.session_timeout_ms,
        protocols=joining.protocols,
        is_awaiting_join=True,
        is_new=True,
    )
    group = transition.group
    transition.group = replace(
        group.with_member(member),
        protocol_type=group.protocol_type if group.members else joining.protocol_type,
        pending_members=group.pending_members - {member_id},
        has_new_member=group.has_new_member or group.is_initial_rebalance,
    )
    transition.start_timer(
        SessionTimer(group.group_id, member_id), transition.settings.new_member_join_timeout_ms
    )
    prepare_or_complete(transition)
    return None, WaitingJoin(group.group_id, member_id)


def _join_again(transition: GroupTransition, joining: Joining) -> JoinResult:
    group = transition.group
    member = validate_member(group, joining.member_id, joining.group_instance_id)
    is_unchanged = member.protocols == joining.protocols
    if group.state is GroupState.COMPLETING_REBALANCE and is_unchanged:
        # The response was lost, and the client sends the request again.
        return joined(group, member.member_id), None
    if group.state is GroupState.STABLE and is_unchanged and member.member_id != group.leader_id:
        return joined(group, member.member_id), None
    # A leader that rejoins requests a rebalance, for example because topics have changed.
    transition.update(_awaiting(member, joining))
    prepare_or_complete(transition)
    return None, WaitingJoin(group.group_id, member.member_id)


def _awaiting(member: Member, joining: Joining) -> Member:
    return replace(
        member,
        client_id=joining.client_id,
        client_host=joining.client_host,
        rebalance_timeout_ms=joining.rebalance_timeout_ms,
        session_timeout_ms=joining.session_timeout_ms,
        protocols=joining.protocols,
        is_awaiting_join=True,
    )


# Static members


def _take_over(transition: GroupTransition, joining: Joining, holder: Member) -> JoinResult:
    """Replace a static member that was restarted; requests with the old member id are fenced."""
    old_leader_id = transition.group.leader_id
    member = _replace_static(transition, holder, joining)
    group = transition.group
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        # Nothing changes for the others; the new id is written, so that the next coordinator has it.
        transition.write(group_metadata(group))
        return _resumed(group, member.member_id, old_leader_id, joining.can_skip_assignment), None
    transition.update(replace(member, is_awaiting_join=True))
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete(transition)
    else:
        # While completing, the leader may be assigning to the old id: the rebalance starts again.
        prepare(transition)
    return None, WaitingJoin(group.group_id, member.member_id)


def _replace_static(transition: GroupTransition, holder: Member, joining: Joining) -> Member:
    group = transition.group
    if holder.is_awaiting_join:
        transition.respond_to_join(
            holder,
            JoinGroupResponse(
                error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=holder.member_id, protocol_name=None
            ),
        )
    if holder.is_awaiting_sync:
        transition.respond_to_sync(holder, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
    member = replace(
        _awaiting(holder, joining),
        member_id=joining.new_member_id,
        is_awaiting_join=False,
        is_awaiting_sync=False,
    )
    members = {
        (member.member_id if one == holder.member_id else one): (member if one == holder.member_id else other)
        for one, other in group.members.items()
    }
    transition.group = replace(
        group,
        members=MappingProxyType(members),
        leader_id=member.member_id if group.leader_id == holder.member_id else group.leader_id,
        pending_syncs=group.pending_syncs - {holder.member_id},
    )
    transition.stop_timer(SessionTimer(group.group_id, holder.member_id))
    transition.start_session(member)
    return member


def _resumed(
    group: Group, member_id: str, old_leader_id: str | None, can_skip_assignment: bool
) -> JoinGroupResponse:
    """The current generation, for a static member that was restarted.

    The leader must not assign again. Version 9 has a flag for this; older versions get the former member id
    as the leader's, so that the client acts as a follower.
    """
    response = joined(group, member_id)
    is_leader = member_id == group.leader_id
    if can_skip_assignment:
        response.skip_assignment = is_leader
        response.members = members_for_leader(group) if is_leader else []
    else:
        response.leader = old_leader_id or ""
        response.members = []
    return response


# Leaving


def leave(transition: GroupTransition, member_id: str, group_instance_id: str | None) -> None:
    """Remove a member on its own request, or by its instance id on an administrator's."""
    group = transition.group
    if member_id == UNKNOWN_MEMBER_ID and group_instance_id is not None:
        holder = group.static_member(group_instance_id)
        if holder is None:
            raise UnknownMemberId(f"unknown instance id {group_instance_id}")
        _remove(transition, holder)
    elif member_id in group.pending_members:
        _remove_pending(transition, member_id)
    else:
        _remove(transition, validate_member(group, member_id, group_instance_id))


def on_session_timeout(transition: GroupTransition, member_id: str) -> None:
    """Remove a member whose session has expired, unless it waits for a response."""
    if member_id in transition.group.pending_members:
        _remove_pending(transition, member_id)
        return
    member = transition.group.members.get(member_id)
    if member is not None and not member.awaits_response:
        _remove(transition, member)


def _remove_pending(transition: GroupTransition, member_id: str) -> None:
    transition.group = transition.group.without_member(member_id)
    transition.stop_timer(SessionTimer(transition.group.group_id, member_id))
    maybe_complete(transition)


def _remove(transition: GroupTransition, member: Member) -> None:
    if member.is_awaiting_join:
        # The client may still be running: then it joins again.
        transition.respond_to_join(
            member,
            JoinGroupResponse(
                error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=UNKNOWN_MEMBER_ID, protocol_name=None
            ),
        )
    if member.is_awaiting_sync:
        transition.respond_to_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    transition.group = transition.group.without_member(member.member_id)
    transition.stop_timer(SessionTimer(transition.group.group_id, member.member_id))
    if transition.group.state is not GroupState.EMPTY:
        prepare_or_complete(transition)
