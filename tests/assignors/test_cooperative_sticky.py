from __future__ import annotations

from hypothesis import example, given

from assignors.given_members import counts_strategy, having, members, members_strategy
from odradek.assignors import cooperative_sticky, sticky
from odradek.assignors.subscription import Subscription
from odradek.common.ids import TopicPartition

MOST_STEPS = 4


def test_a_partition_that_changes_hands_is_given_up_first():
    group = members(c1="a")
    before = cooperative_sticky.assign(group, {"a": 2})
    grown = having(group, before) | members(c2="a")

    first = cooperative_sticky.assign(grown, {"a": 2})
    assert (len(first["c1"]), first["c2"]) == (1, [])

    second = cooperative_sticky.assign(having(grown, first), {"a": 2})
    assert [len(second[member_id]) for member_id in ("c1", "c2")] == [1, 1]


def test_what_an_outdated_member_still_holds_is_not_given_to_another():
    topics, partition = frozenset("a"), TopicPartition("a", 0)
    unsubscribed = Subscription(frozenset(), (partition,), 3)
    assert cooperative_sticky.assign({"c1": unsubscribed, "c2": Subscription(topics)}, {"a": 1}) == {
        "c1": [],
        "c2": [],
    }


# Where members want different topics, a partition that was given up may be better placed with a third one.
THREE_STEPS = {
    "before": members(m1="ab"),
    "after": members(m1="ab", m2="a", m3="ab", m4="b", m5="ac"),
    "counts": {"a": 3, "b": 2, "c": 1},
}


@given(before=members_strategy, after=members_strategy, counts=counts_strategy)
@example(**THREE_STEPS)
def test_nobody_is_given_what_another_holds_and_few_steps_lead_to_the_sticky_assignment(
    before, after, counts
):
    held = having(before, sticky.assign(before, counts))
    group = {
        one: Subscription(member.topics, held[one].owned if one in held else (), 1)
        for one, member in after.items()
    }

    for generation in range(2, 2 + MOST_STEPS):
        assignment = cooperative_sticky.assign(group, counts)
        for member_id, assigned in assignment.items():
            others = {
                partition for one, member in group.items() if one != member_id for partition in member.owned
            }
            assert not others.intersection(assigned)
        if assignment == sticky.assign(group, counts):
            return
        group = having(group, assignment, generation)
    raise AssertionError(f"not settled after {MOST_STEPS} steps")
