"""The heartbeat of the new protocol (KIP-848): join, stay, be told what to read, leave.

| member epoch | the member |
| --- | --- |
| 0 | joins, or joins again after it was fenced |
| > 0 | is where it was told to be |
| -1 | leaves |
| -2 | leaves for a while: a static member that is about to come back |

A heartbeat brings the group up to date: the member's subscription, the topics behind its patterns, the
group's epoch, the target assignment; then the member makes one step towards the target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.groups.consumer import consumer_records as records
from odradek.groups.consumer import target_assignment
from odradek.groups.consumer.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    PartitionId,
    ResolvedRegex,
)
from odradek.groups.consumer.consumer_transition import (
    AssignmentTimer,
    ConsumerGroupTransition,
    RevocationTimer,
)
from odradek.groups.consumer.patterns import compiled, matching
from odradek.groups.consumer.reconciliation import reconcile
from odradek.groups.errors import FencedInstanceId, UnknownMemberId
from odradek.protocol.messages import ConsumerGroupHeartbeatResponse

_Assignment = ConsumerGroupHeartbeatResponse.Assignment


MayDescribe = Callable[[str], bool]
"""Whether the client may know of a topic."""


def _everything(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """A ConsumerGroupHeartbeat, with what its connection adds to it; None is what has not changed."""

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    owned: frozenset[PartitionId] | None = None
    client_id: str = ""
    client_host: str = ""
    may_describe: MayDescribe = _everything

    @property
    def is_leaving(self) -> bool:
        """Whether the member goes."""
        return self.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)

    @property
    def is_full(self) -> bool:
        """Whether it says everything: when it joins, and after an error. Then it is told everything, too."""
        is_complete = self.rebalance_timeout_ms != -1 and self.owned is not None
        return self.member_epoch == JOIN_EPOCH or (
            is_complete and (self.topics is not None or self.regex is not None)
        )


def check(group_id: str, beat: ConsumerHeartbeat, assignors: Collection[str]) -> None:
    """Refuse a heartbeat that makes no sense."""
    for name, text in (("GroupId", group_id), ("InstanceId", beat.instance_id), ("RackId", beat.rack_id)):
        if text is not None and not text.strip():
            _refuse(f"{name} can't be empty.")
    if not beat.member_id:
        _refuse("MemberId can't be empty.")
    if beat.member_epoch == JOIN_EPOCH:
        _check_joining(beat)
    elif beat.member_epoch < LEAVE_STATIC_EPOCH:
        _refuse(f"MemberEpoch {beat.member_epoch} is invalid.")
    elif beat.member_epoch == LEAVE_STATIC_EPOCH and beat.instance_id is None:
        _refuse("InstanceId can't be null.")
    if beat.server_assignor is not None and beat.server_assignor not in assignors:
        raise KafkaError(
            f"ServerAssignor {beat.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
            error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
        )


def _check_joining(beat: ConsumerHeartbeat) -> None:
    if beat.rebalance_timeout_ms == -1:
        _refuse("RebalanceTimeoutMs must be provided in first request.")
    if beat.owned is None or beat.owned:
        _refuse("TopicPartitions must be empty when (re-)joining.")
    if beat.topics is None and beat.regex is None:
        _refuse("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _refuse(problem: str) -> None:
    raise KafkaError(problem, error_code=ErrorCode.INVALID_REQUEST)


# Staying


def heartbeat(turn: ConsumerGroupTransition, beat: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
    """A member joins or is alive."""
    check_room(turn, beat.member_id)
    member = _find_member(turn, beat)
    updated = _updated(member, beat)
    bring_up_to_date(turn, member, updated, beat.may_describe)
    now = step(turn, turn.group.members[beat.member_id], beat.owned)
    turn.start_session(now)
    response = ConsumerGroupHeartbeatResponse(
        member_id=now.member_id,
        member_epoch=now.member_epoch,
        heartbeat_interval_ms=turn.settings.consumer_heartbeat_interval_ms,
    )
    if beat.is_full or now.assigned.keys() != member.assigned.keys():
        response.assignment = _told(now)
    return response


def check_room(turn: ConsumerGroupTransition, member_id: str) -> None:
    """Refuse one member too many."""
    max_size = turn.settings.consumer_max_size
    if len(turn.group.members) >= max_size and member_id not in turn.group.members:
        raise KafkaError(
            f"The consumer group has reached its maximum capacity of {max_size} members.",
            error_code=ErrorCode.GROUP_MAX_SIZE_REACHED,
        )


def _find_member(turn: ConsumerGroupTransition, beat: ConsumerHeartbeat) -> ConsumerMember:
    """The member that speaks, a new one if it joins; it must be in the epoch that we know of."""
    if beat.instance_id is not None:
        return _find_static(turn, beat, beat.instance_id)
    member = turn.group.members.get(beat.member_id)
    if member is None:
        if beat.member_epoch != JOIN_EPOCH:
            raise UnknownMemberId(f"{beat.member_id} is no member of {turn.group.group_id}")
        return ConsumerMember(beat.member_id)
    _check_epoch(member, beat)
    return member


def _find_static(turn: ConsumerGroupTransition, beat: ConsumerHeartbeat, instance_id: str) -> ConsumerMember:
    holder = turn.group.static_member(instance_id)
    if beat.member_epoch == JOIN_EPOCH:
        if holder is None:
            return ConsumerMember(beat.member_id)
        if holder.member_id == beat.member_id:
            return holder
        if holder.classic is None and holder.member_epoch != LEAVE_STATIC_EPOCH:
            raise KafkaError(
                f"Static member {beat.member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {holder.member_id} member.",
                error_code=ErrorCode.UNRELEASED_INSTANCE_ID,
            )
        return replace_static(turn, holder, beat.member_id)
    member = static_member(turn.group, beat.member_id, instance_id)
    _check_epoch(member, beat)
    return member


def static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The member that has this instance id, if it is who it says."""
    holder = group.static_member(instance_id)
    if holder is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder.member_id}."
        )
    return holder


def replace_static(turn: ConsumerGroupTransition, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """A static member has come back under another id: it inherits what its former life had."""
    group_id = turn.group.group_id
    heir = replace(holder, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH)
    target = turn.group.targets.get(holder.member_id, frozenset())
    turn.stop_member_timers(holder.member_id)
    turn.write_all(records.member_gone(group_id, holder.member_id))
    turn.write(records.member_metadata(group_id, heir))
    turn.write(records.target_member(group_id, member_id, target))
    turn.write(records.current_assignment(group_id, heir))
    return heir


def _check_epoch(member: ConsumerMember, beat: ConsumerHeartbeat) -> None:
    known, told = member.member_epoch, beat.member_epoch
    if told in (known, JOIN_EPOCH):
        return
    # Our answer with the new epoch may have got lost: then the member has no more than we gave it.
    is_behind = told == member.previous_member_epoch and told < known
    if is_behind and beat.owned is not None and beat.owned <= member.assigned.keys():
        return
    raise KafkaError(
        f"The consumer group member has another member epoch ({told}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin.",
        error_code=ErrorCode.FENCED_MEMBER_EPOCH,
    )


def _updated(member: ConsumerMember, beat: ConsumerHeartbeat) -> ConsumerMember:
    if beat.regex:
        compiled(beat.regex)
    return replace(
        member,
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if beat.rebalance_timeout_ms == -1 else beat.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor if beat.server_assignor is None else beat.server_assignor,
        topics=member.topics if beat.topics is None else beat.topics,
        regex=member.regex if beat.regex is None else beat.regex,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
    )


def bring_up_to_date(
    turn: ConsumerGroupTransition,
    member: ConsumerMember,
    updated: ConsumerMember,
    may_describe: MayDescribe | None = None,
) -> None:
    """Subscription, patterns, the group's epoch and the target assignment, as they should be now.

    Patterns are matched only in a heartbeat, on behalf of a client that may describe some topics.
    """
    group_id = turn.group.group_id
    is_new = updated.member_id not in turn.group.members
    if is_new or updated != member:
        turn.write(records.member_metadata(group_id, updated))
    has_new_topics = updated.topics != member.topics or updated.regex != member.regex
    has_new_matches = may_describe is not None and resolve_patterns(turn, may_describe)
    drop_unused_patterns(turn)
    refresh_epoch(turn, must_bump=has_new_topics or has_new_matches)
    assign_if_due(turn)


def resolve_patterns(turn: ConsumerGroupTransition, may_describe: MayDescribe) -> bool:
    """Match the patterns that are new, or older than the topics; whether that changed anybody's topics."""
    group = turn.group
    used = {member.regex for member in group.members.values() if member.regex}
    has_changed = False
    for regex in sorted(used):
        known = group.regexes.get(regex)
        if known is not None and known.version == turn.topics.version:
            continue
        names = filter(may_describe, matching(regex, turn.topics.names()))
        found = ResolvedRegex(frozenset(names), turn.topics.version, turn.now_ms)
        if known is None or known.topics != found.topics:
            has_changed = True
            turn.write(records.resolved_regex(group.group_id, regex, found))
    return has_changed


def drop_unused_patterns(turn: ConsumerGroupTransition) -> None:
    """Forget the patterns that no member has any more."""
    used = {member.regex for member in turn.group.members.values()}
    for regex in sorted(turn.group.regexes.keys() - used):
        turn.write(records.regex_gone(turn.group.group_id, regex))


def refresh_epoch(turn: ConsumerGroupTransition, *, must_bump: bool) -> None:
    """Raise the group's epoch if it must be, or if the topics that it reads have changed."""
    known = target_assignment.metadata_hash(turn.group, turn.topics)
    if must_bump or known != turn.group.metadata_hash:
        turn.write(records.group_epoch(turn.group.group_id, turn.group.group_epoch + 1, known))


def assign_if_due(turn: ConsumerGroupTransition) -> None:
    """Compute the target of the group's epoch, or, shortly after the last one, let that wait."""
    group, interval_ms = turn.group, turn.settings.consumer_assignment_interval_ms
    if group.group_epoch <= group.assignment_epoch or not group.members:
        return
    wait_ms = group.assignment_timestamp_ms + interval_ms - turn.now_ms
    # A clock that went back must not keep a group waiting.
    if 0 < wait_ms <= interval_ms:
        turn.start_timer(AssignmentTimer(group.group_id), wait_ms)
        return
    turn.stop_timer(AssignmentTimer(group.group_id))
    assign(turn)


def assign(turn: ConsumerGroupTransition) -> None:
    """Compute the target of the group's epoch; only what has changed is written."""
    group = turn.group
    assignor = target_assignment.preferred_assignor(group, turn.settings.consumer_assignors)
    for member_id, target in sorted(target_assignment.compute(group, turn.topics, assignor).items()):
        if target != group.targets.get(member_id):
            turn.write(records.target_member(group.group_id, member_id, target))
    turn.write(records.target_epoch(group.group_id, group.group_epoch, turn.now_ms))


def step(
    turn: ConsumerGroupTransition, member: ConsumerMember, owned: Collection[PartitionId] | None
) -> ConsumerMember:
    """The member's next step towards the target, written down if it made one."""
    group = turn.group
    if member.is_reconciled_to(group.assignment_epoch):
        return member
    now = reconcile(
        member,
        group.targets.get(member.member_id, frozenset()),
        group.assignment_epoch,
        group.held_by_others(member.member_id),
        owned,
    )
    if now != member:
        turn.write(records.current_assignment(group.group_id, now))
        if now.classic is None:
            _time_revocation(turn, now)
    return now


def _time_revocation(turn: ConsumerGroupTransition, member: ConsumerMember) -> None:
    key = RevocationTimer(turn.group.group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        turn.start_timer(key, member.rebalance_timeout_ms)
    else:
        turn.stop_timer(key)


def _told(member: ConsumerMember) -> _Assignment:
    return _Assignment(
        topic_partitions=[
            _Assignment.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in records.by_topic(member.assigned).items()
        ]
    )


# Leaving


def leaving_member(group: ConsumerGroup, beat: ConsumerHeartbeat) -> ConsumerMember:
    """The member that wants to go."""
    if beat.instance_id is not None:
        return static_member(group, beat.member_id, beat.instance_id)
    if beat.member_id not in group.members:
        raise UnknownMemberId(f"{beat.member_id} is no member of {group.group_id}")
    return group.members[beat.member_id]


def go_for_a_while(turn: ConsumerGroupTransition, member: ConsumerMember) -> None:
    """A static member will be back before its session ends: it keeps its place."""
    away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, revoking={})
    turn.write(records.current_assignment(turn.group.group_id, away))


def remove(turn: ConsumerGroupTransition, member_ids: Collection[str]) -> None:
    """Members are gone: what they had is free, and the others are assigned anew as they are heard of."""
    for member_id in member_ids:
        turn.write_all(records.member_gone(turn.group.group_id, member_id))
        turn.stop_member_timers(member_id)
    drop_unused_patterns(turn)
    refresh_epoch(turn, must_bump=True)
