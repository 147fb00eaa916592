"""The target assignment of a group, computed by a server-side assignor."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from odradek.assignors.server_side import SERVER_ASSIGNORS
from odradek.assignors.subscription import Subscription
from odradek.common.ids import TopicPartition
from odradek.groups.consumer.consumer_group import ConsumerGroup, PartitionId
from odradek.groups.topics import TopicInfo, Topics

_HASH_BYTES = 8


def subscribed_infos(group: ConsumerGroup, topics: Topics) -> dict[str, TopicInfo]:
    """The existing topics that the group subscribes to, by name."""
    found = ((name, topics.find(name)) for name in sorted(group.subscribed_topics()))
    return {name: info for name, info in found if info is not None}


def metadata_hash(group: ConsumerGroup, topics: Topics) -> int:
    """A hash of the ids and partition counts of the group's topics.

    0 for no topics. Kafka uses another hash; a group that moves between the two brokers is assigned again
    once.
    """
    infos = subscribed_infos(group, topics)
    if not infos:
        return 0
    digest = hashlib.blake2b(digest_size=_HASH_BYTES)
    for info in infos.values():
        digest.update(info.topic_id + info.partition_count.to_bytes(4, "big") + info.name.encode() + b"\0")
    return int.from_bytes(digest.digest(), "big", signed=True)


def preferred_assignor(group: ConsumerGroup, offered: Sequence[str]) -> str:
    """The assignor that most members request; the broker's first one if none is requested."""
    votes = Counter(
        member.server_assignor for member in group.members.values() if member.server_assignor in offered
    )
    return max(votes, key=votes.__getitem__) or offered[0] if votes else offered[0]


def compute(group: ConsumerGroup, topics: Topics, assignor: str) -> dict[str, frozenset[PartitionId]]:
    """The partitions of each member; it keeps those of the previous target where possible."""
    infos = subscribed_infos(group, topics)
    names = {info.topic_id: name for name, info in infos.items()}
    members = {
        member_id: Subscription(
            group.topics_of(member),
            tuple(
                TopicPartition(names[topic_id], index)
                for topic_id, index in sorted(group.targets.get(member_id, ()))
                if topic_id in names
            ),
            group_instance_id=member.instance_id,
        )
        for member_id, member in group.members.items()
    }
    counts = {name: info.partition_count for name, info in infos.items()}
    assigned = SERVER_ASSIGNORS[assignor](members, counts)
    return {
        member_id: frozenset((infos[topic].topic_id, index) for topic, index in partitions)
        for member_id, partitions in assigned.items()
    }
