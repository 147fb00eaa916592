"""Cooperative sticky: the sticky assignment in mostly two rebalances, without stopping the whole group.

A partition that moves is assigned to no member at first: its owner revokes it and rejoins; the next
rebalance assigns it to its new owner.
"""

from __future__ import annotations

from odradek.assignors import sticky
from odradek.assignors.subscription import Assignment, Members, PartitionCounts


def assign(members: Members, counts: PartitionCounts) -> Assignment:
    """The partitions that each member may own after this rebalance."""
    still_held = {partition: member_id for member_id, member in members.items() for partition in member.owned}
    former = {**still_held, **sticky.former_owners(members, counts)}
    return {
        member_id: [partition for partition in assigned if former.get(partition, member_id) == member_id]
        for member_id, assigned in sticky.assign(members, counts).items()
    }
