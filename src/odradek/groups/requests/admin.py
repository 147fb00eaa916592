"""Lists, describes and deletes groups."""

from __future__ import annotations

from collections.abc import Collection

from odradek.common.error_codes import ErrorCode
from odradek.coordinator.result import Result
from odradek.groups.classic_group import CONSUMER_PROTOCOL_TYPE, Group, GroupState, Member
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from odradek.groups.consumer.consumer_records import group_tombstones
from odradek.groups.errors import NonEmptyGroup
from odradek.groups.records import group_tombstone, offset_tombstone
from odradek.groups.state import AnyGroup, GroupsState
from odradek.protocol.messages import DescribeGroupsResponse, ListGroupsResponse

CLASSIC, CONSUMER = "classic", "consumer"

_Described = DescribeGroupsResponse.Groups
_Listed = ListGroupsResponse.Groups


def list_groups(state: GroupsState, states: Collection[str], types: Collection[str]) -> list[_Listed]:
    """The groups in one of these states and of one of these types; an empty collection means any."""
    wanted_states, wanted_types = ({one.lower() for one in names} for names in (states, types))
    listed = [_listed(group) for group in state.groups.values()]
    return [
        row
        for row in listed
        if (not wanted_states or row.group_state.lower() in wanted_states)
        and (not wanted_types or row.group_type.lower() in wanted_types)
    ]


def _listed(group: AnyGroup) -> _Listed:
    if isinstance(group, ConsumerGroup):
        return _Listed(
            group_id=group.group_id,
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=group.state.value,
            group_type=CONSUMER,
        )
    return _Listed(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC,
    )


def describe(state: GroupsState, group_id: str, *, knows_group_errors: bool) -> _Described:
    """One classic group with its members; member metadata only while the group is stable."""
    group = state.find(group_id)
    if not isinstance(group, Group):
        problem = "not found" if group is None else "is not a classic group"
        return _not_found(group_id, problem, knows_group_errors)
    is_stable = group.state is GroupState.STABLE
    return _Described(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[_described_member(group, member, is_stable) for member in group.members.values()],
    )


def _not_found(group_id: str, problem: str, knows_group_errors: bool) -> _Described:
    """GROUP_ID_NOT_FOUND from version 6 on; older versions get a group in state Dead."""
    row = _Described(group_id=group_id, group_state=GroupState.DEAD.value)
    if knows_group_errors:
        row.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        row.error_message = f"Group {group_id} {problem}."
    return row


def _described_member(group: Group, member: Member, is_stable: bool) -> _Described.Members:
    return _Described.Members(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
        member_assignment=member.assignment,
    )


def delete(state: GroupsState, group_id: str) -> Result[ErrorCode]:
    """Delete a group that has no members, and its offsets, those of open transactions too."""
    group = state.get(group_id)
    if group.state not in (GroupState.EMPTY, ConsumerGroupState.EMPTY):
        raise NonEmptyGroup(f"{group_id} is {group.state.value}")
    tombstones = [
        offset_tombstone(group_id, partition) for partition in state.offsets.partitions_of(group_id)
    ]
    if isinstance(group, ConsumerGroup):
        tombstones += [change.record() for change in group_tombstones(group)]
    else:
        tombstones.append(group_tombstone(group_id))
    return Result(response=ErrorCode.NONE, records=tuple(tombstones))
