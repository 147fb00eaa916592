"""The heartbeat of the consumer protocol (KIP-848): join, stay, get an assignment, leave.

| member epoch | the member |
| --- | --- |
| 0 | joins, or rejoins after it was fenced |
| > 0 | is in that epoch |
| -1 | leaves |
| -2 | leaves temporarily: a static member that will rejoin |

A heartbeat updates the group: the member's subscription, the topics that match its patterns, the group's
epoch, the target assignment; then the member takes one step towards the target.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.patterns import compiled
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
from odradek.groups.consumer.reconciliation import reconcile
from odradek.groups.errors import FencedInstanceId, UnknownMemberId
from odradek.protocol.messages import ConsumerGroupHeartbeatResponse

REGEX_FIELD = "SubscribedTopicRegex"

_Assignment = ConsumerGroupHeartbeatResponse.Assignment


MayDescribe = Callable[[str], bool]
"""Whether the client may describe a topic."""


def _describes_all(_: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """A ConsumerGroupHeartbeat, with what its connection adds; None for fields that have not changed."""

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
    may_describe: MayDescribe = _describes_all

    @property
    def is_leaving(self) -> bool:
        """Whether the member leaves."""
        return self.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH)

    @property
    def is_full(self) -> bool:
        """Whether all fields are set: when joining and after an error. Then the response is complete, too."""
        is_complete = self.rebalance_timeout_ms != -1 and self.owned is not None
        return self.member_epoch == JOIN_EPOCH or (
            is_complete and (self.topics is not None or self.regex is not None)
        )


def check(group_id: str, request: ConsumerHeartbeat, assignors: Collection[str]) -> None:
    """Raise if the heartbeat is not valid."""
    for name, text in (
        ("GroupId", group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and not text.strip():
            _refuse(f"{name} can't be empty.")
    if not request.member_id:
        _refuse("MemberId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _check_joining(request)
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        _refuse(f"MemberEpoch {request.member_epoch} is invalid.")
    elif request.member_epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        _refuse("InstanceId can't be null.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
            error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
        )


def _check_joining(request: ConsumerHeartbeat) -> None:
    if request.rebalance_timeout_ms == -1:
        _refuse("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        _refuse("TopicPartitions must be empty when (re-)joining.")
    if request.topics is None and request.regex is None:
        _refuse("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _refuse(problem: str) -> None:
    raise KafkaError(problem, error_code=ErrorCode.INVALID_REQUEST)


# Staying


def heartbeat(
    transition: ConsumerGroupTransition, request: ConsumerHeartbeat
) -> ConsumerGroupHeartbeatResponse:
    """Handle a heartbeat of a member that joins or stays."""
    check_group_size(transition, request.member_id)
    member = _find_member(transition, request)
    updated = _updated(member, request)
    bring_up_to_date(transition, member, updated, request.may_describe)
    now = step(transition, transition.group.members[request.member_id], request.owned)
    transition.start_session(now)
    response = ConsumerGroupHeartbeatResponse(
        member_id=now.member_id,
        member_epoch=now.member_epoch,
        heartbeat_interval_ms=transition.settings.consumer_heartbeat_interval_ms,
    )
    if request.is_full or now.assigned.keys() != member.assigned.keys():
        response.assignment = _assignment_of(now)
    return response


def check_group_size(transition: ConsumerGroupTransition, member_id: str) -> None:
    """Raise if the group is full."""
    max_size = transition.settings.consumer_max_size
    if len(transition.group.members) >= max_size and member_id not in transition.group.members:
        raise KafkaError(
            f"The consumer group has reached its maximum capacity of {max_size} members.",
            error_code=ErrorCode.GROUP_MAX_SIZE_REACHED,
        )


def _find_member(transition: ConsumerGroupTransition, request: ConsumerHeartbeat) -> ConsumerMember:
    """The member that sent the heartbeat, or a new one if it joins; its epoch is checked."""
    if request.instance_id is not None:
        return _find_static(transition, request, request.instance_id)
    member = transition.group.members.get(request.member_id)
    if member is None:
        if request.member_epoch != JOIN_EPOCH:
            raise UnknownMemberId(f"{request.member_id} is not a member of {transition.group.group_id}")
        return ConsumerMember(request.member_id)
    _check_epoch(member, request)
    return member


def _find_static(
    transition: ConsumerGroupTransition, request: ConsumerHeartbeat, instance_id: str
) -> ConsumerMember:
    holder = transition.group.static_member(instance_id)
    if request.member_epoch == JOIN_EPOCH:
        if holder is None:
            return ConsumerMember(request.member_id)
        if holder.member_id == request.member_id:
            return holder
        if holder.classic is None and holder.member_epoch != LEAVE_STATIC_EPOCH:
            raise KafkaError(
                f"Static member {request.member_id} with instance id {instance_id} cannot join the group "
                f"because the instance id is owned by {holder.member_id} member.",
                error_code=ErrorCode.UNRELEASED_INSTANCE_ID,
            )
        return replace_static(transition, holder, request.member_id)
    member = static_member(transition.group, request.member_id, instance_id)
    _check_epoch(member, request)
    return member


def static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The member with this instance id; raises if its member id is another one."""
    holder = group.static_member(instance_id)
    if holder is None:
        raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise FencedInstanceId(
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{holder.member_id}."
        )
    return holder


def replace_static(
    transition: ConsumerGroupTransition, holder: ConsumerMember, member_id: str
) -> ConsumerMember:
    """Replace a static member that rejoins under another id; the new one inherits its assignment."""
    group_id = transition.group.group_id
    replacement = replace(
        holder, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    target = transition.group.targets.get(holder.member_id, frozenset())
    transition.stop_member_timers(holder.member_id)
    transition.write_all(records.member_tombstones(group_id, holder.member_id))
    transition.write(records.member_metadata(group_id, replacement))
    transition.write(records.target_member(group_id, member_id, target))
    transition.write(records.current_assignment(group_id, replacement))
    return replacement


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    known, sent = member.member_epoch, request.member_epoch
    if sent in (known, JOIN_EPOCH):
        return
    # The response with the new epoch may have got lost: then the member owns no more than it was assigned.
    is_behind = sent == member.previous_member_epoch and sent < known
    if is_behind and request.owned is not None and request.owned <= member.assigned.keys():
        return
    raise KafkaError(
        f"The consumer group member has another member epoch ({sent}) than the one known by the group "
        f"coordinator ({known}). The member must abandon all its partitions and rejoin.",
        error_code=ErrorCode.FENCED_MEMBER_EPOCH,
    )


def _updated(member: ConsumerMember, request: ConsumerHeartbeat) -> ConsumerMember:
    if request.regex:
        compiled(request.regex, REGEX_FIELD)
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms
            if request.rebalance_timeout_ms == -1
            else request.rebalance_timeout_ms
        ),
        server_assignor=member.server_assignor
        if request.server_assignor is None
        else request.server_assignor,
        topics=member.topics if request.topics is None else request.topics,
        regex=member.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def bring_up_to_date(
    transition: ConsumerGroupTransition,
    member: ConsumerMember,
    updated: ConsumerMember,
    may_describe: MayDescribe | None = None,
) -> None:
    """Update the patterns, the group's epoch and the target assignment.

    Patterns are resolved only in a heartbeat, with the permissions of its client.
    """
    group_id = transition.group.group_id
    is_new = updated.member_id not in transition.group.members
    if is_new or updated != member:
        transition.write(records.member_metadata(group_id, updated))
    has_new_topics = updated.topics != member.topics or updated.regex != member.regex
    has_new_matches = may_describe is not None and resolve_patterns(transition, may_describe)
    drop_unused_patterns(transition)
    refresh_epoch(transition, must_bump=has_new_topics or has_new_matches)
    assign_if_due(transition)


def resolve_patterns(transition: ConsumerGroupTransition, may_describe: MayDescribe) -> bool:
    """Resolve the patterns that are new or outdated; True if that changed the topics of any member."""
    group = transition.group
    used = {member.regex for member in group.members.values() if member.regex}
    has_changed = False
    for regex in sorted(used):
        known = group.regexes.get(regex)
        if known is not None and known.version == transition.topics.version:
            continue
        pattern = compiled(regex, REGEX_FIELD)
        names = filter(may_describe, filter(pattern.fullmatch, transition.topics.names()))
        found = ResolvedRegex(frozenset(names), transition.topics.version, transition.now_ms)
        if known is None or known.topics != found.topics:
            has_changed = True
            transition.write(records.resolved_regex(group.group_id, regex, found))
    return has_changed


def drop_unused_patterns(transition: ConsumerGroupTransition) -> None:
    """Remove the patterns that no member uses any more."""
    used = {member.regex for member in transition.group.members.values()}
    for regex in sorted(transition.group.regexes.keys() - used):
        transition.write(records.regex_tombstone(transition.group.group_id, regex))


def refresh_epoch(transition: ConsumerGroupTransition, *, must_bump: bool) -> None:
    """Increment the group's epoch if it must be, or if the subscribed topics have changed."""
    known = target_assignment.metadata_hash(transition.group, transition.topics)
    if must_bump or known != transition.group.metadata_hash:
        transition.write(
            records.group_epoch(transition.group.group_id, transition.group.group_epoch + 1, known)
        )


def assign_if_due(transition: ConsumerGroupTransition) -> None:
    """Compute the target assignment of the group's epoch, or delay it if the last one is recent."""
    group, interval_ms = transition.group, transition.settings.consumer_assignment_interval_ms
    if group.group_epoch <= group.assignment_epoch or not group.members:
        return
    wait_ms = group.assignment_timestamp_ms + interval_ms - transition.now_ms
    # A clock that was set back must not delay the assignment.
    if 0 < wait_ms <= interval_ms:
        transition.start_timer(AssignmentTimer(group.group_id), wait_ms)
        return
    transition.stop_timer(AssignmentTimer(group.group_id))
    assign(transition)


def assign(transition: ConsumerGroupTransition) -> None:
    """Compute the target assignment of the group's epoch; only changes are written."""
    group = transition.group
    assignor = target_assignment.preferred_assignor(group, transition.settings.consumer_assignors)
    for member_id, target in sorted(target_assignment.compute(group, transition.topics, assignor).items()):
        if target != group.targets.get(member_id):
            transition.write(records.target_member(group.group_id, member_id, target))
    transition.write(records.target_epoch(group.group_id, group.group_epoch, transition.now_ms))


def step(
    transition: ConsumerGroupTransition, member: ConsumerMember, owned: Collection[PartitionId] | None
) -> ConsumerMember:
    """The member's next step towards the target; written if it changes anything."""
    group = transition.group
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
        transition.write(records.current_assignment(group.group_id, now))
        if now.classic is None:
            _time_revocation(transition, now)
    return now


def _time_revocation(transition: ConsumerGroupTransition, member: ConsumerMember) -> None:
    key = RevocationTimer(transition.group.group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        transition.start_timer(key, member.rebalance_timeout_ms)
    else:
        transition.stop_timer(key)


def _assignment_of(member: ConsumerMember) -> _Assignment:
    return _Assignment(
        topic_partitions=[
            _Assignment.TopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in records.by_topic(member.assigned).items()
        ]
    )


# Leaving


def leaving_member(group: ConsumerGroup, request: ConsumerHeartbeat) -> ConsumerMember:
    """The member that leaves; raises if there is none."""
    if request.instance_id is not None:
        return static_member(group, request.member_id, request.instance_id)
    if request.member_id not in group.members:
        raise UnknownMemberId(f"{request.member_id} is not a member of {group.group_id}")
    return group.members[request.member_id]


def leave_temporarily(transition: ConsumerGroupTransition, member: ConsumerMember) -> None:
    """Keep the assignment of a static member that will rejoin before its session expires."""
    away = replace(member, member_epoch=LEAVE_STATIC_EPOCH, revoking={})
    transition.write(records.current_assignment(transition.group.group_id, away))


def remove(transition: ConsumerGroupTransition, member_ids: Collection[str]) -> None:
    """Remove members; the others get a new assignment with their next heartbeats."""
    for member_id in member_ids:
        transition.write_all(records.member_tombstones(transition.group.group_id, member_id))
        transition.stop_member_timers(member_id)
    drop_unused_patterns(transition)
    refresh_epoch(transition, must_bump=True)
