"""What an assignor is given, and what it gives back.

An assignor is a function of the members, each with its subscription, and of the number of partitions of each
topic. Topics that do not exist are not among the counts, and get nobody anything.
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
    """One member: what it wants, and what it had in the generation that it last took part in."""

    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation_id: int = NO_GENERATION
    group_instance_id: str | None = None


Members = Mapping[str, Subscription]
Assignor = Callable[[Members, PartitionCounts], Assignment]


def sorted_members(members: Members) -> list[str]:
    """Member ids in the order of assigning: static members by their instance id, then the others by id.

    A static member comes back under a new member id, and keeps its place by that.
    """

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(members, key=place)


def subscribed_partitions(members: Members, counts: PartitionCounts) -> list[TopicPartition]:
    """Every partition that somebody wants, by topic, then by number."""
    topics = {topic for member in members.values() for topic in member.topics}
    return all_partitions(sorted(topics), counts)


def all_partitions(topics: Iterable[str], counts: PartitionCounts) -> list[TopicPartition]:
    """The partitions of these topics, in this order."""
    return [TopicPartition(topic, index) for topic in topics for index in range(counts.get(topic, 0))]
