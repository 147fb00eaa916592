"""Round robin: all partitions in order, assigned in turn to the sorted members that subscribe to them."""

from __future__ import annotations

from itertools import cycle

from odradek.assignors.subscription import (
    Assignment,
    Members,
    PartitionCounts,
    sorted_members,
    subscribed_partitions,
)


def assign(members: Members, counts: PartitionCounts) -> Assignment:
    """The partitions of each member."""
    assignment: Assignment = {member_id: [] for member_id in members}
    next_members = cycle(sorted_members(members))
    for partition in subscribed_partitions(members, counts):
        # The loop ends, because some member subscribes to the topic.
        member_id = next(one for one in next_members if partition.topic in members[one].topics)
        assignment[member_id].append(partition)
    return assignment
