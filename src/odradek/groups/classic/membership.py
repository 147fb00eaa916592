"""Who belongs to a classic group: joining, leaving, being dropped.

| who asks to join | what happens |
| --- | --- |
| a dynamic member without an id | is given one and comes again (KIP-394); old clients join at once |
| a dynamic member with an id it was given | joins |
| a static member without an id | joins, or takes over from whoever had its instance id (KIP-345) |
| a member of the group | goes on in the current generation if nothing changed, else the group rebalances |
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

JoinAnswer = tuple[JoinGroupResponse | None, Hashable | None]
"""The answer, or where to wait for it."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup request, with what its connection and its version add to it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    # The id that it gets if it has none.
    new_member_id: str
    # Version 4 and later: an id is given out first, so that a lost answer leaves no ghost behind.
    requires_known_member_id: bool = True
    # Version 9 and later: a leader can be told that everything stays as it is.
    can_skip_assignment: bool = True


def join(turn: GroupTransition, joining: Joining) -> JoinAnswer:
    """Somebody wants to be a member."""
    group = turn.group
    if not _has_room(turn, joining.member_id):
        raise KafkaError(
            f"{group.group_id} has {len(group.members)} members", error_code=ErrorCode.GROUP_MAX_SIZE_REACHED
        )
    if not group.supports(joining.protocol_type, (name for name, _ in joining.protocols)):
        raise InconsistentGroupProtocol(f"{group.group_id} has no protocol in common with the new member")
    if joining.member_id == UNKNOWN_MEMBER_ID:
        return _join_without_id(turn, joining)
    if joining.member_id in group.pending_members:
        return _add(turn, joining, joining.member_id)
    return _join_again(turn, joining)


def _has_room(turn: GroupTransition, member_id: str) -> bool:
    group, max_size = turn.group, turn.settings.max_size
    member = group.members.get(member_id)
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        # Members that have not joined again may lose their place to those who have.
        joined_count = sum(one.is_awaiting_join for one in group.members.values())
        return (member is not None and member.is_awaiting_join) or joined_count < max_size
    return member is not None or len(group.members) < max_size


def _join_without_id(turn: GroupTransition, joining: Joining) -> JoinAnswer:
    if joining.group_instance_id is not None:
        holder = turn.group.static_member(joining.group_instance_id)
        if holder is not None:
            return _take_over(turn, joining, holder)
        return _add(turn, joining, joining.new_member_id)
    if joining.requires_known_member_id:
        return _give_out_id(turn, joining), None
    return _add(turn, joining, joining.new_member_id)


def _give_out_id(turn: GroupTransition, joining: Joining) -> JoinGroupResponse:
    group = turn.group
    turn.group = replace(group, pending_members=group.pending_members | {joining.new_member_id})
    turn.start_timer(SessionTimer(group.group_id, joining.new_member_id), joining.session_timeout_ms)
    return JoinGroupResponse(
        error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=joining.new_member_id, protocol_name=None
    )


def _add(turn: GroupTransition, joining: Joining, member_id: str) -> JoinAnswer:
    """A new member; the group rebalances, or its rebalance goes on with one more."""
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
    group = turn.group
    turn.group = replace(
        group.with_member(member),
        protocol_type=group.protocol_type if group.members else joining.protocol_type,
        pending_members=group.pending_members - {member_id},
        has_new_member=group.has_new_member or group.is_initial_rebalance,
    )
    turn.start_timer(SessionTimer(group.group_id, member_id), turn.settings.new_member_join_timeout_ms)
    prepare_or_complete(turn)
    return None, WaitingJoin(group.group_id, member_id)


def _join_again(turn: GroupTransition, joining: Joining) -> JoinAnswer:
    group = turn.group
    member = validate_member(group, joining.member_id, joining.group_instance_id)
    is_unchanged = member.protocols == joining.protocols
    if group.state is GroupState.COMPLETING_REBALANCE and is_unchanged:
        # It did not get our answer, and asks once more.
        return joined(group, member.member_id), None
    if group.state is GroupState.STABLE and is_unchanged and member.member_id != group.leader_id:
        return joined(group, member.member_id), None
    # A leader that joins again wants a rebalance, for example because topics have changed.
    turn.update(_awaiting(member, joining))
    prepare_or_complete(turn)
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


def _take_over(turn: GroupTransition, joining: Joining, holder: Member) -> JoinAnswer:
    """A static member came back with a new life; whoever still speaks for the old one is fenced."""
    old_leader_id = turn.group.leader_id
    member = _replace_static(turn, holder, joining)
    group = turn.group
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        # Nothing has changed for the others; the new id is written down, so that it survives a move.
        turn.write(group_metadata(group))
        return _resumed(group, member.member_id, old_leader_id, joining.can_skip_assignment), None
    turn.update(replace(member, is_awaiting_join=True))
    if group.state is GroupState.PREPARING_REBALANCE:
        maybe_complete(turn)
    else:
        # While completing, the leader may be assigning to the old id: it has to begin anew.
        prepare(turn)
    return None, WaitingJoin(group.group_id, member.member_id)


def _replace_static(turn: GroupTransition, holder: Member, joining: Joining) -> Member:
    group = turn.group
    if holder.is_awaiting_join:
        turn.answer_join(
            holder,
            JoinGroupResponse(
                error_code=ErrorCode.FENCED_INSTANCE_ID, member_id=holder.member_id, protocol_name=None
            ),
        )
    if holder.is_awaiting_sync:
        turn.answer_sync(holder, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
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
    turn.group = replace(
        group,
        members=MappingProxyType(members),
        leader_id=member.member_id if group.leader_id == holder.member_id else group.leader_id,
        pending_syncs=group.pending_syncs - {holder.member_id},
    )
    turn.stop_timer(SessionTimer(group.group_id, holder.member_id))
    turn.start_session(member)
    return member


def _resumed(
    group: Group, member_id: str, old_leader_id: str | None, can_skip_assignment: bool
) -> JoinGroupResponse:
    """The current generation for a static member that came back.

    A leader must not assign anew. One that can be told so is; an older one hears the id of its former life
    as the leader's, and takes itself for a follower.
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


def leave(turn: GroupTransition, member_id: str, group_instance_id: str | None) -> None:
    """A member goes, or an administrator removes it by its instance id."""
    group = turn.group
    if member_id == UNKNOWN_MEMBER_ID and group_instance_id is not None:
        holder = group.static_member(group_instance_id)
        if holder is None:
            raise UnknownMemberId(f"nobody has the instance id {group_instance_id}")
        _remove(turn, holder)
    elif member_id in group.pending_members:
        _remove_pending(turn, member_id)
    else:
        _remove(turn, validate_member(group, member_id, group_instance_id))


def session_over(turn: GroupTransition, member_id: str) -> None:
    """A member was silent for too long; one that waits for our answer is excused."""
    if member_id in turn.group.pending_members:
        _remove_pending(turn, member_id)
        return
    member = turn.group.members.get(member_id)
    if member is not None and not member.is_excused:
        _remove(turn, member)


def _remove_pending(turn: GroupTransition, member_id: str) -> None:
    turn.group = turn.group.without_member(member_id)
    turn.stop_timer(SessionTimer(turn.group.group_id, member_id))
    maybe_complete(turn)


def _remove(turn: GroupTransition, member: Member) -> None:
    if member.is_awaiting_join:
        # It may still be there: then it joins anew.
        turn.answer_join(
            member,
            JoinGroupResponse(
                error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=UNKNOWN_MEMBER_ID, protocol_name=None
            ),
        )
    if member.is_awaiting_sync:
        turn.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    turn.group = turn.group.without_member(member.member_id)
    turn.stop_timer(SessionTimer(turn.group.group_id, member.member_id))
    if turn.group.state is not GroupState.EMPTY:
        prepare_or_complete(turn)
