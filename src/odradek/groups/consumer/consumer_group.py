"""The state of one group of the consumer protocol (KIP-848), as immutable values.

The group has an epoch, incremented by every change that affects the assignment. The target assignment has an
epoch, too. Each member moves towards it independently: it revokes partitions, then advances to the target
epoch, then gets the partitions that other members have revoked.

    Empty          no members
    Assigning      the group's epoch is ahead of the target's
        Reconciling    a member has not reached the target assignment
        Stable         all members have reached it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from odradek.groups.classic_group import Protocols

FIRST_EPOCH = 1
JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2

PartitionId = tuple[bytes, int]
"""Topic id and partition number."""

Value = TypeVar("Value")
_NONE: Mapping[Any, Any] = MappingProxyType({})


class ConsumerGroupState(Enum):
    """Names as in the protocol."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """How far a member has got towards the target assignment, numbered as in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # has to revoke partitions, and has not confirmed it
    UNRELEASED_PARTITIONS = 2  # waits for partitions that other members have not revoked
    UNKNOWN = 127


class ClassicMetadata(NamedTuple):
    """What a classic member sent when it joined."""

    session_timeout_ms: int
    protocols: Protocols


class ResolvedRegex(NamedTuple):
    """The topics that match a pattern, as of a version of the topics."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. Partitions are mapped to the epoch in which they were assigned."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    regex: str = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    member_epoch: int = JOIN_EPOCH
    previous_member_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: Mapping[PartitionId, int] = field(default_factory=lambda: _NONE)
    revoking: Mapping[PartitionId, int] = field(default_factory=lambda: _NONE)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has exactly the partitions of the target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def in_epoch(self, epoch: int) -> ConsumerMember:
        """In that epoch; the previous epoch is kept, because the response may get lost."""
        if epoch == self.member_epoch:
            return self
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """One group."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    # Hash of the subscribed topics: a change triggers a new assignment.
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: Mapping[str, ConsumerMember] = field(default_factory=lambda: _NONE)
    targets: Mapping[str, frozenset[PartitionId]] = field(default_factory=lambda: _NONE)
    regexes: Mapping[str, ResolvedRegex] = field(default_factory=lambda: _NONE)

    @property
    def state(self) -> ConsumerGroupState:
        """The state, derived from the epochs and the members."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.group_epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member that has this instance id."""
        for member in self.members.values():
            if member.instance_id == instance_id:
                return member
        return None

    def with_member(self, member: ConsumerMember) -> ConsumerGroup:
        """With this member added or replaced."""
        return replace(self, members=with_item(self.members, member.member_id, member))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """The topics it subscribes to, by name and by pattern."""
        resolved = self.regexes.get(member.regex)
        return member.topics if resolved is None else member.topics | resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        """The topics that any member subscribes to."""
        return frozenset().union(*(self.topics_of(member) for member in self.members.values()))

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member subscribes to that topic."""
        return topic in self.subscribed_topics()

    def held_by_others(self, member_id: str) -> set[PartitionId]:
        """The partitions that other members own, or have not confirmed to have revoked."""
        return {
            partition
            for other in self.members.values()
            if other.member_id != member_id
            for partition in (*other.assigned, *other.revoking)
        }


def with_item(items: Mapping[str, Value], key: str, value: Value) -> Mapping[str, Value]:
    """The mapping with one value set."""
    return MappingProxyType({**items, key: value})


def without_item(items: Mapping[str, Value], key: str) -> Mapping[str, Value]:
    """The mapping without one key."""
    return MappingProxyType({one: value for one, value in items.items() if one != key})
