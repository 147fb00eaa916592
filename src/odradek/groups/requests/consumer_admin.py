"""Describes groups of the consumer protocol: members, current and target assignments."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.common.error_codes import ErrorCode
from odradek.groups.consumer.consumer_group import ConsumerGroup, ConsumerMember, PartitionId
from odradek.groups.consumer.consumer_records import by_topic
from odradek.groups.consumer.target_assignment import preferred_assignor
from odradek.groups.state import GroupsState
from odradek.groups.topics import Topics
from odradek.protocol.messages import ConsumerGroupDescribeResponse

_Described = ConsumerGroupDescribeResponse.Groups
_Member = ConsumerGroupDescribeResponse.Groups.Members

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def describe(state: GroupsState, group_id: str) -> _Described:
    """One group with its members."""
    group = state.find(group_id)
    if not isinstance(group, ConsumerGroup):
        problem = "not found" if group is None else "is not a consumer group"
        return _Described(
            group_id=group_id,
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {problem}.",
        )
    return _Described(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(group, state.settings.consumer_assignors),
        members=[_member(group, member, state.topics) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, topics: Topics) -> _Member:
    target = group.targets.get(member.member_id, frozenset())
    return _Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_Member.Assignment(
            topic_partitions=[
                _Member.Assignment.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
                for topic_id, name, indexes in _named({**member.assigned, **member.revoking}, topics)
            ]
        ),
        target_assignment=_Member.TargetAssignment(
            topic_partitions=[
                _Member.TargetAssignment.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=indexes
                )
                for topic_id, name, indexes in _named(target, topics)
            ]
        ),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _named(partitions: Iterable[PartitionId], topics: Topics) -> Iterable[tuple[bytes, str, list[int]]]:
    """Grouped by topic; deleted topics are left out."""
    for topic_id, indexes in by_topic(partitions).items():
        name = topics.name_of(topic_id)
        if name is not None:
            yield topic_id, name, indexes
