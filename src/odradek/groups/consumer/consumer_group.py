"""The state of one group of the new protocol (KIP-848), as values that are replaced and never changed.

The group has an epoch, raised by whatever changes what should be assigned. The target assignment belongs to
an epoch, too, and each member walks towards it at its own pace: it gives up what it has to, then moves to the
target's epoch, then gets what others have given up.

    Empty          no members
    Assigning      the group's epoch is ahead of the target's
    Reconciling    a member is not where the target wants it
    Stable         all are
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
"""Topic id and number."""

Value = TypeVar("Value")
_NONE: Mapping[Any, Any] = MappingProxyType({})


class ConsumerGroupState(Enum):
    """Named as the wire names them."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(IntEnum):
    """How far a member is on its way to the target, numbered as in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1  # it has to give up partitions, and has not said yet that it did
    UNRELEASED_PARTITIONS = 2  # it waits for partitions that others have not given up yet
    UNKNOWN = 127


class ClassicMetadata(NamedTuple):
    """What a member that speaks the classic protocol said when it joined."""

    session_timeout_ms: int
    protocols: Protocols


class ResolvedRegex(NamedTuple):
    """The topics that a pattern stands for, as of a version of the topics."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member. Partitions are kept with the epoch in which they were assigned to it."""

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
        """Whether it has all that the target of that epoch gives it, and nothing else."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def in_epoch(self, epoch: int) -> ConsumerMember:
        """In that epoch; where it was before is remembered, since our answer may get lost."""
        if epoch == self.member_epoch:
            return self
        return replace(self, member_epoch=epoch, previous_member_epoch=self.member_epoch)


@dataclass(frozen=True, slots=True)
class ConsumerGroup:
    """One group between two events."""

    group_id: str
    group_epoch: int = FIRST_EPOCH
    # Of the topics that the group reads: another hash means another assignment.
    metadata_hash: int = 0
    assignment_epoch: int = FIRST_EPOCH
    assignment_timestamp_ms: int = 0
    members: Mapping[str, ConsumerMember] = field(default_factory=lambda: _NONE)
    targets: Mapping[str, frozenset[PartitionId]] = field(default_factory=lambda: _NONE)
    regexes: Mapping[str, ResolvedRegex] = field(default_factory=lambda: _NONE)

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group stands."""
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
        """With this member in place of what was under its id."""
        return replace(self, members=with_item(self.members, member.member_id, member))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """What it subscribes to, by name and by pattern."""
        resolved = self.regexes.get(member.regex)
        return member.topics if resolved is None else member.topics | resolved.topics

    def subscribed_topics(self) -> frozenset[str]:
        """What anybody subscribes to."""
        return frozenset().union(*(self.topics_of(member) for member in self.members.values()))

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether anybody reads that topic."""
        return topic in self.subscribed_topics()

    def held_by_others(self, member_id: str) -> set[PartitionId]:
        """What other members have, or have not said yet that they gave it up."""
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
