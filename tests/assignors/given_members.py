"""Groups for the tests of assignors, by hand and at random."""

from __future__ import annotations

from hypothesis import strategies as st

from odradek.assignors.subscription import Assignment, Members, PartitionCounts, Subscription
from odradek.common.ids import TopicPartition

TOPICS = ("a", "b", "c", "d")


def members(**topics: str) -> dict[str, Subscription]:
    """`members(c1="ab", c2="a")`: each member with the topics of its letters."""
    return {member_id: Subscription(frozenset(letters)) for member_id, letters in topics.items()}


def shown(assignment: Assignment) -> dict[str, str]:
    """`{"c1": "a0 a1"}`"""
    return {
        member_id: " ".join(f"{topic}{index}" for topic, index in assigned)
        for member_id, assigned in assignment.items()
    }


def having(given: Members, assignment: Assignment, generation_id: int = 1) -> dict[str, Subscription]:
    """The same members, owning what they were assigned."""
    return {
        member_id: Subscription(one.topics, tuple(assignment.get(member_id, ())), generation_id)
        for member_id, one in given.items()
    }


counts_strategy = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 7), max_size=len(TOPICS))
subscriptions = st.builds(
    lambda topics, instance: Subscription(frozenset(topics), group_instance_id=instance),
    st.sets(st.sampled_from(TOPICS)),
    st.none(),
)
members_strategy = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(8)]), subscriptions, min_size=1
)


@st.composite
def equal_members(draw: st.DrawFn) -> dict[str, Subscription]:
    """Members that all want the same."""
    topics = frozenset(draw(st.sets(st.sampled_from(TOPICS), min_size=1)))
    return {f"m{number}": Subscription(topics) for number in range(draw(st.integers(1, 8)))}


def assert_each_wanted_partition_has_one_owner(
    given: Members, counts: PartitionCounts, assignment: Assignment
) -> None:
    assert set(assignment) == set(given)
    for member_id, assigned in assignment.items():
        assert all(partition.topic in given[member_id].topics for partition in assigned)
    owned = [partition for assigned in assignment.values() for partition in assigned]
    wanted = {topic for one in given.values() for topic in one.topics}
    assert sorted(owned) == [
        TopicPartition(topic, index) for topic in sorted(wanted) for index in range(counts.get(topic, 0))
    ]
