"""Groups: list, describe, delete. Both protocols: the classic one, and the new one of consumers (KIP-848)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from odradek.client.admin.base import ResultOrError, require
from odradek.client.admin.by_coordinator import CoordinatorAdmin
from odradek.client.broker_errors import GroupIdNotFound, UnsupportedVersion, check
from odradek.client.consumer.group.consumer_protocol import PROTOCOL_TYPE, read_assignment
from odradek.client.errors import UnsupportedByBroker
from odradek.client.metadata import Node
from odradek.client.network.connection import BrokerConnection
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

_FIRST_LIST_WITH_STATES = 4
_FIRST_LIST_WITH_TYPES = 5

_ConsumerMember = ConsumerGroupDescribeResponse.Groups.Members


class _Word(StrEnum):
    """A word of the protocol, in any case; one of a later Kafka version is UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        for member in cls:
            if member.value.lower() == str(value).lower():
                return member
        return cls("Unknown")


Word = TypeVar("Word", bound=_Word)


class GroupType(_Word):
    """The protocol of a group."""

    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"
    UNKNOWN = "Unknown"


class GroupState(_Word):
    """The state of a group; ASSIGNING and RECONCILING are of the new protocol only."""

    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    EMPTY = "Empty"
    DEAD = "Dead"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in a list; `protocol_type` is empty for one that only commits offsets."""

    group_id: str
    group_type: GroupType
    protocol_type: str
    state: GroupState

    @property
    def is_simple_consumer_group(self) -> bool:
        """Whether no member ever joined: there are only offsets."""
        return not self.protocol_type


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member and its partitions; epoch and target are None in a classic group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    member_epoch: int | None = None
    target_assignment: frozenset[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members; the epochs are None in a classic group."""

    group_id: str
    group_type: GroupType
    state: GroupState
    protocol_type: str
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None


class GroupAdmin(CoordinatorAdmin):
    """The calls about groups."""

    async def list_groups(
        self,
        *,
        states: Collection[GroupState | str] = (),
        types: Collection[GroupType | str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """All groups by name, or those in one of these states and of one of these types."""
        wanted_states, wanted_types = _known(GroupState, states), _known(GroupType, types)
        request = ListGroupsRequest(states_filter=list(wanted_states), types_filter=list(wanted_types))

        async def attempt() -> list[GroupListing]:
            metadata = await self.brokers.ensure_fresh()
            responses = await asyncio.gather(*(self._list_at(node_id, request) for node_id in metadata.nodes))
            # While a group moves, two brokers may list it.
            listed = {one.group_id: one for response in responses for one in response}
            return [
                listed[group_id]
                for group_id in sorted(listed)
                if not wanted_types or listed[group_id].group_type in wanted_types
            ]

        return await self.brokers.retry("listing groups", attempt, timeout_ms=timeout_ms)

    async def _list_at(self, node_id: int, request: ListGroupsRequest) -> list[GroupListing]:
        connection = await self.brokers.connection(node_id)
        version = connection.versions.best(ApiKey.LIST_GROUPS)
        if version < _FIRST_LIST_WITH_STATES and request.states_filter:
            needed = f"{_FIRST_LIST_WITH_STATES} or later for states"
            raise UnsupportedByBroker(connection.address, "LIST_GROUPS", needed, f"version {version}")
        # Brokers that cannot filter by type have only one, and we filter again.
        request = (
            request
            if version >= _FIRST_LIST_WITH_TYPES
            else ListGroupsRequest(states_filter=request.states_filter)
        )
        response = await connection.send_request(request, ListGroupsResponse)
        check(response.error_code)
        return [
            GroupListing(
                row.group_id,
                GroupType(row.group_type) if version >= _FIRST_LIST_WITH_TYPES else GroupType.CLASSIC,
                row.protocol_type,
                GroupState(row.group_state),
            )
            for row in response.groups
        ]

    async def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ResultOrError[GroupDescription]]:
        """Groups with their members; GroupIdNotFound for one that does not exist."""
        return await self._by_coordinator("describing groups", group_ids, _describe, timeout_ms)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """One group; GroupIdNotFound and similar errors are raised."""
        return require((await self.describe_groups([group_id]))[group_id])

    async def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ResultOrError[None]]:
        """Delete groups that have no members (else NonEmptyGroup), with their offsets."""

        async def delete(_: Node, connection: BrokerConnection, group_id: str) -> None:
            request = DeleteGroupsRequest(groups_names=[group_id])
            (row,) = (await connection.send_request(request, DeleteGroupsResponse)).results
            check(row.error_code, group_id)

        return await self._by_coordinator("deleting groups", group_ids, delete, timeout_ms)

    async def delete_group(self, group_id: str) -> None:
        """Delete one group; NonEmptyGroup, GroupIdNotFound and similar errors are raised."""
        require((await self.delete_groups([group_id]))[group_id])


def _known(kind: type[Word], words: Collection[str]) -> list[Word]:
    found = [kind(word) for word in words]
    for word, one in zip(words, found, strict=True):
        if one == "Unknown":
            raise ValueError(f"{word!r} is none of {', '.join(kind)}")
    return found


async def _describe(node: Node, connection: BrokerConnection, group_id: str) -> GroupDescription:
    """A group, whose protocol is not known before."""
    if connection.versions.serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
        try:
            return await _describe_consumer_group(node, connection, group_id)
        except (GroupIdNotFound, UnsupportedVersion):
            pass
    return await _describe_classic_group(node, connection, group_id)


async def _describe_consumer_group(
    node: Node, connection: BrokerConnection, group_id: str
) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group_id])
    (row,) = (await connection.send_request(request, ConsumerGroupDescribeResponse)).groups
    check(row.error_code, row.error_message)
    return GroupDescription(
        group_id,
        GroupType.CONSUMER,
        GroupState(row.group_state),
        PROTOCOL_TYPE,
        row.assignor_name,
        node,
        tuple(_consumer_member(member) for member in row.members),
        row.group_epoch,
        row.assignment_epoch,
    )


async def _describe_classic_group(
    node: Node, connection: BrokerConnection, group_id: str
) -> GroupDescription:
    request = DescribeGroupsRequest(groups=[group_id])
    (row,) = (await connection.send_request(request, DescribeGroupsResponse)).groups
    check(row.error_code, row.error_message)
    state = GroupState(row.group_state)
    if state is GroupState.DEAD:
        # How versions before 6 say that there is none.
        raise GroupIdNotFound(f"Group {group_id} not found.")
    return GroupDescription(
        group_id,
        GroupType.CLASSIC,
        state,
        row.protocol_type,
        row.protocol_data,
        node,
        tuple(_classic_member(row.protocol_type, member) for member in row.members),
    )


def _consumer_member(row: _ConsumerMember) -> MemberDescription:
    return MemberDescription(
        row.member_id,
        row.instance_id,
        row.client_id,
        row.client_host,
        _partitions(row.assignment.topic_partitions),
        row.member_epoch,
        _partitions(row.target_assignment.topic_partitions),
    )


def _partitions(
    rows: Iterable[
        _ConsumerMember.Assignment.TopicPartitions | _ConsumerMember.TargetAssignment.TopicPartitions
    ],
) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(row.topic_name, number) for row in rows for number in row.partitions)


def _classic_member(protocol_type: str, row: DescribeGroupsResponse.Groups.Members) -> MemberDescription:
    return MemberDescription(
        row.member_id,
        row.group_instance_id,
        row.client_id,
        row.client_host,
        _classic_assignment(row.member_assignment) if protocol_type == PROTOCOL_TYPE else frozenset(),
    )


def _classic_assignment(assignment: bytes) -> frozenset[TopicPartition]:
    """The assignment by the group's leader, which may be any client: none if it cannot be read."""
    try:
        return read_assignment(assignment)
    except (ProtocolError, struct.error):
        return frozenset()
