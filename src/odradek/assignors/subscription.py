"""The input and output of an assignor.

An assignor is a function of the members, each with its subscription, and of the number of partitions of each
topic. Topics that do not exist have no count and are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from odradek.common.ids import TopicPartition

NO_GENERATION = -1

PartitionCounts = Mapping[str, int]
Assignment = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Subscription:
    """One member: its topics, and the partitions it owned in its last generation."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None


Members = Mapping[str, Subscription]
Assignor = Callable[[Members, PartitionCounts], Assignment]


def sorted_members(members: Members) -> list[str]:
    """Member ids in the order of assignment: static members by instance id, then the others by member id.

    A static member rejoins under a new member id; its instance id keeps its place.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=place)


def subscribed_partitions(members: Members, counts: PartitionCounts) -> list[TopicPartition]:
    """Every partition that a member subscribes to, by topic, then by number."""
    topics = {topic for member in members.values() for topic in member.topics}
    return all_partitions(sorted(topics), counts)


def all_partitions(topics: Iterable[str], counts: PartitionCounts) -> list[TopicPartition]:
    """The partitions of these topics, in this order."""
    return [TopicPartition(topic, index) for topic in topics for index in range(counts.get(topic, 0))]
