"""Sticky: as balanced as the subscriptions allow, and then with as few moves as possible.

If all members subscribe to the same topics, the loads differ by at most one, and a member keeps as many of
its partitions as its share allows. Otherwise no chain of moves could reduce a difference of two or more; a
partition returns to its former owner if that does not change the balance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from odradek.assignors.subscription import (
    Assignment,
    Members,
    PartitionCounts,
    sorted_members,
    subscribed_partitions,
)
from odradek.common.ids import TopicPartition

Owners = dict[TopicPartition, str]


def assign(members: Members, counts: PartitionCounts) -> Assignment:
    """The partitions of each member."""
    if not members:
        return {}
    former = former_owners(members, counts)
    subscriptions = {frozenset(topic for topic in one.topics if topic in counts) for one in members.values()}
    if len(subscriptions) == 1:
        return _assign_equally(members, counts, former)
    return _Balancing(members, subscribed_partitions(members, counts), former).run()


def former_owners(members: Members, counts: PartitionCounts) -> Owners:
    """Former owners of partitions: if several members claim one, the one of the latest generation.

    If two members of one generation claim a partition, neither counts. Partitions that do not exist or are
    not subscribed to any more have no owner.
    """
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id in sorted_members(members):
        member = members[member_id]
        for partition in member.owned:
            if partition.topic not in member.topics or partition.partition >= counts.get(partition.topic, 0):
                continue
            generation_id, owner = claims.get(partition, (member.generation_id - 1, None))
            if member.generation_id > generation_id:
                claims[partition] = (member.generation_id, member_id)
            elif member.generation_id == generation_id and owner != member_id:
                claims[partition] = (generation_id, None)
    return {partition: owner for partition, (_, owner) in claims.items() if owner is not None}


# Equal subscriptions


def _assign_equally(members: Members, counts: PartitionCounts, former: Owners) -> Assignment:
    ordered = sorted_members(members)
    partitions = subscribed_partitions(members, counts)
    share, extra = divmod(len(partitions), len(ordered))
    assignment: Assignment = {member_id: [] for member_id in ordered}
    for partition in partitions:
        if partition in former:
            assignment[former[partition]].append(partition)
    for member_id in ordered:
        had = assignment[member_id]
        # The larger shares go to members that keep more of their partitions that way.
        is_larger = extra > 0 and len(had) > share
        extra -= is_larger
        del had[share + is_larger :]
    kept = {partition for had in assignment.values() for partition in had}
    _fill(assignment, ordered, [one for one in partitions if one not in kept], share)
    return assignment


def _fill(assignment: Assignment, ordered: list[str], free: Iterable[TopicPartition], share: int) -> None:
    """Assign the free partitions: first to members below the share, then one more to members at the share."""
    left = deque(free)
    for limit in (share, share + 1):
        needy = deque(one for one in ordered if len(assignment[one]) < limit)
        while left and needy:
            member_id = needy.popleft()
            assignment[member_id].append(left.popleft())
            if len(assignment[member_id]) < limit:
                needy.append(member_id)


# Different subscriptions


class _Balancing:
    """Computes one assignment: loads are balanced along chains of members.

    A chain moves a partition from its first member to the second, one from the second to the third, and so
    on: the loads in between stay the same. When there is no chain from a load to one that is smaller by two,
    the assignment is as balanced as possible.
    """

    def __init__(self, members: Members, partitions: Collection[TopicPartition], former: Owners) -> None:
        self._former = former
        self._ordered = sorted_members(members)
        self._partitions = partitions
        self._readers: dict[str, list[str]] = {}
        for member_id in self._ordered:
            for topic in members[member_id].topics:
                self._readers.setdefault(topic, []).append(member_id)
        self._held: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in self._ordered}

    def run(self) -> Assignment:
        """Keep the former assignment, assign free partitions, balance, return partitions."""
        free = []
        for partition in self._partitions:
            owner = self._former.get(partition)
            if owner is None:
                free.append(partition)
            else:
                self._held[owner][partition] = None
        # Partitions with the fewest subscribers first: they leave the least choice.
        for partition in sorted(free, key=lambda one: len(self._readers[one.topic])):
            reader = min(self._readers[partition.topic], key=self._load)
            self._held[reader][partition] = None
        while self._even_out():
            pass
        while self._give_back():
            pass
        return {member_id: sorted(held) for member_id, held in self._held.items()}

    def _load(self, member_id: str) -> int:
        return len(self._held[member_id])

    def _even_out(self) -> bool:
        """Follow one chain from a load to one that is smaller by two or more; False if there is none."""
        least = min(map(len, self._held.values()))
        for member_id in sorted(self._ordered, key=self._load, reverse=True):
            if self._load(member_id) < least + 2:
                break
            if self._move_along(member_id, self._load(member_id) - 2):
                return True
        return False

    def _move_along(self, start: str, max_load: int) -> bool:
        """Move partitions along the cheapest chain from `start` to a load of at most `max_load`.

        A step costs nothing if its partition is not at its former owner anyway.
        """
        cost = {start: 0}
        came_by: dict[str, tuple[str, TopicPartition]] = {}
        queue = deque([start])
        done: set[str] = set()
        while queue:
            member_id = queue.popleft()
            if member_id in done:
                continue
            done.add(member_id)
            if member_id != start and self._load(member_id) <= max_load:
                self._carry(member_id, came_by)
                return True
            for partition, reader, step in self._steps(member_id):
                if reader not in done and cost[member_id] + step < cost.get(
                    reader, len(self._partitions) + 1
                ):
                    cost[reader] = cost[member_id] + step
                    came_by[reader] = (member_id, partition)
                    (queue.append if step else queue.appendleft)(reader)
        return False

    def _steps(self, member_id: str) -> Iterable[tuple[TopicPartition, str, int]]:
        """The partitions it could pass on, to which member, and whether that costs a move (1) or not (0)."""
        offered: dict[tuple[str, int], TopicPartition] = {}
        for partition in self._held[member_id]:
            former = self._former.get(partition)
            if former is not None and former != member_id:
                yield partition, former, 0
            offered.setdefault((partition.topic, int(former == member_id)), partition)
        for (topic, step), partition in offered.items():
            for reader in self._readers[topic]:
                if reader != member_id:
                    yield partition, reader, step

    def _carry(self, end: str, came_by: dict[str, tuple[str, TopicPartition]]) -> None:
        while end in came_by:
            giver, partition = came_by[end]
            del self._held[giver][partition]
            self._held[end][partition] = None
            end = giver

    def _give_back(self) -> bool:
        """Return partitions to former owners where loads only swap; False if there are none."""
        has_moved = False
        for member_id, held in self._held.items():
            for partition in list(held):
                former = self._former.get(partition, member_id)
                if former != member_id and self._load(former) < self._load(member_id):
                    del held[partition]
                    self._held[former][partition] = None
                    has_moved = True
        return has_moved
