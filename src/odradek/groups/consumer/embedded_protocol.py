"""The metadata and assignments of classic consumers: int16 version, then the message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.groups.consumer.consumer_group import PartitionId
from odradek.groups.topics import Topics
from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_INT16_BYTES = 2


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription | None:
    """A consumer's subscription; None if it cannot be read."""
    version = _version(metadata, ConsumerProtocolSubscription.SPEC.versions.high)
    try:
        subscription, _ = ConsumerProtocolSubscription.decode(metadata, version, _INT16_BYTES)
    except ProtocolError:
        return None
    return subscription


def owned_partitions(subscription: ConsumerProtocolSubscription, topics: Topics) -> frozenset[PartitionId]:
    """The partitions that the consumer claims to own, if their topics still exist."""
    return _ids(((one.topic, one.partitions) for one in subscription.owned_partitions), topics)


def read_assignment(assignment: bytes, topics: Topics) -> frozenset[PartitionId]:
    """The partitions in an assignment, if their topics still exist; empty if it cannot be read."""
    version = _version(assignment, ConsumerProtocolAssignment.SPEC.versions.high)
    try:
        read, _ = ConsumerProtocolAssignment.decode(assignment, version, _INT16_BYTES)
    except ProtocolError:
        return frozenset()
    return _ids(((one.topic, one.partitions) for one in read.assigned_partitions), topics)


def write_assignment(partitions: Mapping[PartitionId, int], metadata: bytes, topics: Topics) -> bytes:
    """An assignment in the version of the member's metadata."""
    version = _version(metadata, ConsumerProtocolAssignment.SPEC.versions.high)
    by_topic: dict[str, list[int]] = {}
    for topic_id, index in sorted(partitions):
        name = topics.name_of(topic_id)
        if name is not None:
            by_topic.setdefault(name, []).append(index)
    written = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.AssignedPartitions(topic=name, partitions=indexes)
            for name, indexes in sorted(by_topic.items())
        ],
        user_data=None,
    )
    return version.to_bytes(_INT16_BYTES, "big") + written.encode(version)


def _version(content: bytes, newest: int) -> int:
    # Later versions only add fields at the end.
    return min(max(int.from_bytes(content[:_INT16_BYTES], "big", signed=True), 0), newest)


def _ids(named: Iterable[tuple[str, list[int]]], topics: Topics) -> frozenset[PartitionId]:
    found: set[PartitionId] = set()
    for name, indexes in named:
        info = topics.find(name)
        if info is not None:
            found.update((info.topic_id, index) for index in indexes)
    return frozenset(found)
