"""A group changes its protocol while it has members (`group.consumer.migration.policy`).

Upgrade: the first member of the consumer protocol joins a classic group. It becomes a consumer group, whose
other members continue with the classic protocol.

Downgrade: the last member of the consumer protocol leaves. The group becomes a classic group and rebalances.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import replace
from types import MappingProxyType

from odradek.common.error_codes import ErrorCode
from odradek.coordinator.result import ParkedResponse
from odradek.groups.classic.group_transition import (
    GroupTransition,
    JoinTimer,
    SyncTimer,
    WaitingJoin,
    WaitingSync,
)
from odradek.groups.classic.rebalance import prepare
from odradek.groups.classic_group import CONSUMER_PROTOCOL_TYPE, Group, GroupState, Member
from odradek.groups.consumer import consumer_records as records
from odradek.groups.consumer.consumer_group import ClassicMetadata, ConsumerGroup, ConsumerMember
from odradek.groups.consumer.consumer_transition import (
    MEMBER_TIMERS,
    AssignmentTimer,
    ConsumerGroupTransition,
)
from odradek.groups.consumer.embedded_protocol import read_assignment, read_subscription, write_assignment
from odradek.groups.errors import GroupIdNotFound
from odradek.groups.records import group_metadata, group_tombstone
from odradek.groups.settings import GroupSettings
from odradek.groups.topics import Topics
from odradek.protocol.messages import JoinGroupResponse, SyncGroupResponse

logger = logging.getLogger(__name__)


# Upgrade


def upgrade(group: Group, settings: GroupSettings, topics: Topics, now_ms: int) -> ConsumerGroupTransition:
    """Convert a classic group to a consumer group, for its first member of the consumer protocol to join."""
    _check_upgrade(group, settings)
    epoch = max(group.generation_id, 1)
    transition = ConsumerGroupTransition(ConsumerGroup(group.group_id), settings, topics, now_ms)
    members = [_as_consumer_member(group, member, epoch, topics) for member in group.members.values()]
    for member in members:
        transition.write(records.member_metadata(group.group_id, member))
    known_hash = 0  # computed when the member joins
    transition.write(records.group_epoch(group.group_id, epoch, known_hash))
    for member in members:
        transition.write(records.target_member(group.group_id, member.member_id, member.assigned))
    transition.write(records.target_epoch(group.group_id, epoch, 0))
    for member in members:
        transition.write(records.current_assignment(group.group_id, member))
        transition.start_session(member)
    transition.write_before([group_tombstone(group.group_id)])
    _reject_waiting(transition, group)
    return transition


def _check_upgrade(group: Group, settings: GroupSettings) -> None:
    if not group.members:
        return
    if (
        not settings.is_upgrade_enabled
        or group.protocol_type != CONSUMER_PROTOCOL_TYPE
        or len(group.members) >= settings.consumer_max_size
    ):
        raise GroupIdNotFound(f"Group {group.group_id} is not a consumer group.")


def _as_consumer_member(group: Group, member: Member, epoch: int, topics: Topics) -> ConsumerMember:
    metadata = member.metadata(group.protocol_name) or member.protocols[0][1]
    subscription = read_subscription(metadata)
    if subscription is None:
        raise GroupIdNotFound(
            f"Cannot upgrade the classic group {group.group_id}: the embedded consumer protocol is malformed."
        )
    assigned = read_assignment(member.assignment, topics) if member.assignment else frozenset()
    return ConsumerMember(
        member.member_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        member_epoch=epoch,
        previous_member_epoch=epoch,
        assigned=MappingProxyType(dict.fromkeys(assigned, epoch)),
    )


def _reject_waiting(transition: ConsumerGroupTransition, group: Group) -> None:
    """Make the members that wait for the classic rebalance rejoin."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        names = (group.group_id, member.member_id)
        if member.is_awaiting_join:
            response = JoinGroupResponse(error_code=code, member_id=member.member_id, protocol_name=None)
            transition.answer(ParkedResponse(WaitingJoin(*names), response))
        if member.is_awaiting_sync:
            transition.answer(ParkedResponse(WaitingSync(*names), SyncGroupResponse(error_code=code)))
    transition.stop_timer(JoinTimer(group.group_id))
    transition.stop_timer(SyncTimer(group.group_id))


# Downgrade


def may_downgrade(group: ConsumerGroup, settings: GroupSettings, without: Collection[str] = ()) -> bool:
    """Whether all members, except for those that leave, use the classic protocol and downgrade is enabled."""
    staying = [member for member in group.members.values() if member.member_id not in without]
    return (
        bool(staying)
        and all(member.classic is not None for member in staying)
        and settings.is_downgrade_enabled
        and len(staying) <= settings.max_size
    )


def downgrade(
    group: ConsumerGroup, settings: GroupSettings, topics: Topics, now_ms: int, without: Collection[str] = ()
) -> GroupTransition:
    """Convert a consumer group to a classic group; if members leave, the others rebalance."""
    staying = [member for member in group.members.values() if member.member_id not in without]
    classic = _as_classic_group(group, staying, topics, now_ms)
    transition = GroupTransition(classic, settings, now_ms)
    for change in records.group_tombstones(group):
        transition.write(change.record())
    transition.write(group_metadata(classic))
    transition.stop_timer(AssignmentTimer(group.group_id))
    for member_id in group.members:
        for timer in MEMBER_TIMERS:
            transition.stop_timer(timer(group.group_id, member_id))
    for member in classic.members.values():
        transition.start_session(member)
    if without:
        prepare(transition)
    logger.info("group %s was downgraded to a classic group", group.group_id)
    return transition


def _as_classic_group(
    group: ConsumerGroup, staying: list[ConsumerMember], topics: Topics, now_ms: int
) -> Group:
    members = {member.member_id: _as_classic_member(member, topics) for member in staying}
    classic = Group(
        group.group_id,
        state=GroupState.STABLE,
        generation_id=group.group_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        leader_id=next(iter(members)),
        members=MappingProxyType(members),
        state_timestamp_ms=now_ms,
    )
    return replace(classic, protocol_name=classic.select_protocol())


def _as_classic_member(member: ConsumerMember, topics: Topics) -> Member:
    assert member.classic is not None
    session_timeout_ms, protocols = member.classic
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        protocols=protocols,
        assignment=write_assignment(member.assigned, protocols[0][1], topics),
    )
