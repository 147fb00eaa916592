"""Range: each topic is divided into contiguous ranges; the first members get one partition more.

Five partitions of A over C1, C2, C3: A0 A1 | A2 A3 | A4. Topics with equal partition counts and subscribers
get the same ranges, so that partitions with the same number belong to the same member.
"""

from __future__ import annotations

from odradek.assignors.subscription import Assignment, Members, PartitionCounts, sorted_members
from odradek.common.ids import TopicPartition


def assign(members: Members, counts: PartitionCounts) -> Assignment:
    """The partitions of each member."""
    assignment: Assignment = {member_id: [] for member_id in members}
    ordered = sorted_members(members)
    topics = {topic for member in members.values() for topic in member.topics}
    for topic in sorted(topics):
        readers = [member_id for member_id in ordered if topic in members[member_id].topics]
        share, extra = divmod(counts.get(topic, 0), len(readers))
        start = 0
        for place, member_id in enumerate(readers):
            end = start + share + (place < extra)
            assignment[member_id] += [TopicPartition(topic, index) for index in range(start, end)]
            start = end
    return assignment
