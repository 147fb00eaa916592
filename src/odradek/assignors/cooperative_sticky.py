"""Cooperative sticky: the sticky assignment in steps, mostly two, so that nobody stops reading what it keeps.

A partition that changes hands is given to nobody at first: its owner hears that it is gone, gives it up, and
joins again; then it is free for its new owner.
"""

from __future__ import annotations

from odradek.assignors import sticky
from odradek.assignors.subscription import Assignment, Members, PartitionCounts


def assign(members: Members, counts: PartitionCounts) -> Assignment:
    """The partitions that each member may have at once."""
    still_held = {partition: member_id for member_id, member in members.items() for partition in member.owned}
    former = {**still_held, **sticky.former_owners(members, counts)}
    return {
        member_id: [partition for partition in assigned if former.get(partition, member_id) == member_id]
        for member_id, assigned in sticky.assign(members, counts).items()
    }
