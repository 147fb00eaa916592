"""The state of one classic group, as immutable values.

    Empty ──join──▶ PreparingRebalance ──all joined, or time over──▶ CompletingRebalance ──sync──▶ Stable
      ▲                 ▲      │                                           │                          │
      └──no members────┼──────┘                                           │                          │
                        └──────────────────join, leave, expiry─────────────┴──────────────────────────┘

There is no value for Dead: a dead group does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
NO_GENERATION = -1
UNKNOWN_MEMBER_ID = ""

_INT16_BYTES = 2


class GroupState(Enum):
    """Names as in the protocol."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


Protocols = tuple[tuple[str, bytes], ...]
"""Names of assignors in order of preference, each with the member's metadata for it."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_awaiting_join: bool = False
    is_awaiting_sync: bool = False
    # It has not received its id yet, so that it cannot send heartbeats.
    is_new: bool = False

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's metadata for that protocol."""
        return dict(self.protocols).get(protocol_name or "", b"")

    def vote(self, candidates: Iterable[str]) -> str:
        """Its first protocol among the candidates."""
        allowed = set(candidates)
        return next(name for name, _ in self.protocols if name in allowed)

    @property
    def awaits_response(self) -> bool:
        """Whether it waits for a response, and therefore sends no heartbeats."""
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)


@dataclass(frozen=True, slots=True)
class Group:
    """One group. `members` are in the order in which they joined."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: Mapping[str, Member] = field(default_factory=lambda: MappingProxyType({}))
    # Member ids that were returned and have not joined yet (KIP-394).
    pending_members: frozenset[str] = frozenset()
    # Members of the current generation that have not sent SyncGroup yet.
    pending_syncs: frozenset[str] = frozenset()
    # The group was empty when this rebalance began: it waits for more members even if all have joined.
    is_initial_rebalance: bool = False
    has_new_member: bool = False
    # How much longer an initial rebalance may be delayed while new members join.
    initial_delay_left_ms: int = 0
    state_timestamp_ms: int | None = None

    def static_member(self, group_instance_id: str) -> Member | None:
        """The member that has this instance id."""
        for member in self.members.values():
            if member.group_instance_id == group_instance_id:
                return member
        return None

    def with_member(self, member: Member) -> Group:
        """With this member added or replaced; the first member is the leader."""
        members = MappingProxyType({**self.members, member.member_id: member})
        return replace(self, members=members, leader_id=self.leader_id or member.member_id)

    def without_member(self, member_id: str) -> Group:
        """Without that member; if it was the leader, the earliest of the others is."""
        members = {one: member for one, member in self.members.items() if one != member_id}
        leader_id = next(iter(members), None) if self.leader_id == member_id else self.leader_id
        return replace(
            self,
            members=MappingProxyType(members),
            leader_id=leader_id,
            pending_members=self.pending_members - {member_id},
            pending_syncs=self.pending_syncs - {member_id},
        )

    def in_state(self, state: GroupState, now_ms: int) -> Group:
        """In another state as of now."""
        return replace(self, state=state, state_timestamp_ms=now_ms)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def has_all_joined(self) -> bool:
        """Whether all members have joined this rebalance."""
        return not self.pending_members and all(member.is_awaiting_join for member in self.members.values())

    def candidate_protocols(self) -> set[str]:
        """The protocols that every member supports."""
        offers = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*offers) if offers else set()

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols can be in this group."""
        offered = set(names)
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(offered)
        return protocol_type == self.protocol_type and not offered.isdisjoint(self.candidate_protocols())

    def select_protocol(self) -> str:
        """The protocol with the most votes; on a tie the one that was voted for first."""
        candidates = self.candidate_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics that members subscribe to; None if their metadata cannot be read."""
        if not self.members:
            return frozenset()
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.metadata(self.protocol_name))
            if subscribed is None:
                return None
            topics.update(subscribed)
        return frozenset(topics)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group subscribes to that topic; True if it is not known."""
        topics = self.subscribed_topics()
        if topics is not None:
            return topic in topics
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE and self.state is not GroupState.EMPTY


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics in a consumer's metadata (int16 version, body); None if it cannot be read."""
    version = int.from_bytes(metadata[:_INT16_BYTES], "big", signed=True)
    newest = ConsumerProtocolSubscription.SPEC.versions.high
    try:
        # Later versions only add fields at the end.
        subscription, _ = ConsumerProtocolSubscription.decode(metadata, min(version, newest), _INT16_BYTES)
    except ProtocolError:
        return None
    return subscription.topics
