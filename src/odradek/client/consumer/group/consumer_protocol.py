"""The messages between members of a classic group, opaque to the broker. No I/O.

    int16 version | ConsumerProtocolSubscription     to the leader, when joining
    int16 version | ConsumerProtocolAssignment       from the leader, when synchronising

Sticky assignors also need the previous assignment. With the cooperative protocol it is in the subscription
itself; `sticky` gives all partitions up before it joins, and sends them in the user data:

    int32 topics | (string topic, int32 count, int32 partition …) … | int32 generation
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from odradek.assignors import cooperative_sticky, round_robin, sticky
from odradek.assignors import range as range_assignor
from odradek.assignors.subscription import NO_GENERATION, Assignor, Subscription
from odradek.common.ids import TopicPartition
from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3
PROTOCOL_TYPE = "consumer"

ASSIGNORS: Mapping[str, Assignor] = {
    "range": range_assignor.assign,
    "roundrobin": round_robin.assign,
    "sticky": sticky.assign,
    "cooperative-sticky": cooperative_sticky.assign,
}

_VERSION = struct.Struct(">h")
_INT32 = struct.Struct(">i")


def write_subscription(assignor: str, wanted: Subscription, rack_id: str | None) -> bytes:
    """What a member sends for one of its assignors."""
    owned = [] if assignor == "sticky" else _by_topic(wanted.owned)
    user_data: bytes | None = None
    if assignor == "sticky":
        user_data = _write_sticky(wanted)
    elif assignor == "cooperative-sticky":
        user_data = _INT32.pack(wanted.generation_id)
    message = ConsumerProtocolSubscription(
        topics=sorted(wanted.topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.OwnedPartitions(topic=topic, partitions=numbers)
            for topic, numbers in owned
        ],
        generation_id=wanted.generation_id,
        rack_id=rack_id,
    )
    return _VERSION.pack(SUBSCRIPTION_VERSION) + message.encode(SUBSCRIPTION_VERSION)


def read_subscription(assignor: str, metadata: bytes, group_instance_id: str | None) -> Subscription:
    """What a member sent; a later version only adds fields at the end."""
    version = min(max(0, _VERSION.unpack_from(metadata)[0]), SUBSCRIPTION_VERSION)
    message, _ = ConsumerProtocolSubscription.decode(metadata, version, _VERSION.size)
    owned = tuple(
        TopicPartition(row.topic, number) for row in message.owned_partitions for number in row.partitions
    )
    generation_id = message.generation_id
    if assignor == "sticky":
        owned, generation_id = _read_sticky(message.user_data)
    elif assignor == "cooperative-sticky" and generation_id == NO_GENERATION and message.user_data:
        generation_id = _INT32.unpack_from(message.user_data)[0]
    return Subscription(frozenset(message.topics), owned, generation_id, group_instance_id)


def write_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """The assignment of one member, by the leader."""
    rows = [
        ConsumerProtocolAssignment.AssignedPartitions(topic=topic, partitions=numbers)
        for topic, numbers in _by_topic(partitions)
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=rows, user_data=None)
    return _VERSION.pack(ASSIGNMENT_VERSION) + message.encode(ASSIGNMENT_VERSION)


def read_assignment(assignment: bytes) -> frozenset[TopicPartition]:
    """The assignment from the leader; nothing if that is empty."""
    if not assignment:
        return frozenset()
    version = min(max(0, _VERSION.unpack_from(assignment)[0]), ASSIGNMENT_VERSION)
    message, _ = ConsumerProtocolAssignment.decode(assignment, version, _VERSION.size)
    return frozenset(
        TopicPartition(row.topic, number) for row in message.assigned_partitions for number in row.partitions
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return list(topics.items())


def _write_sticky(wanted: Subscription) -> bytes:
    topics = _by_topic(wanted.owned)
    written = bytearray(_INT32.pack(len(topics)))
    for topic, numbers in topics:
        name = topic.encode()
        written += struct.pack(f">h{len(name)}si{len(numbers)}i", len(name), name, len(numbers), *numbers)
    return bytes(written + _INT32.pack(wanted.generation_id))


def _read_sticky(user_data: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    if not user_data:
        return (), NO_GENERATION
    owned, position = [], _INT32.size
    try:
        for _ in range(_INT32.unpack_from(user_data)[0]):
            (length,) = _VERSION.unpack_from(user_data, position)
            position += _VERSION.size
            topic = user_data[position : position + length].decode()
            (count,) = _INT32.unpack_from(user_data, position + length)
            position += length + _INT32.size
            owned += [
                TopicPartition(topic, one) for one in struct.unpack_from(f">{count}i", user_data, position)
            ]
            position += count * _INT32.size
        # The first version of this had no generation.
        has_generation = position + _INT32.size <= len(user_data)
        generation_id = _INT32.unpack_from(user_data, position)[0] if has_generation else NO_GENERATION
    except (struct.error, UnicodeDecodeError, MemoryError) as error:
        raise ProtocolError(f"the user data of a sticky member cannot be read: {error}") from None
    return tuple(owned), generation_id
