from __future__ import annotations

from hypothesis import given

from assignors.given_members import (
    assert_each_wanted_partition_has_one_owner,
    counts_strategy,
    equal_members,
    members,
    members_strategy,
    shown,
)
from odradek.assignors import round_robin


def test_partitions_are_dealt_in_turn():
    assert shown(round_robin.assign(members(c1="ab", c2="ab"), {"a": 3, "b": 3})) == {
        "c1": "a0 a2 b1",
        "c2": "a1 b0 b2",
    }


def test_members_that_do_not_want_a_topic_are_passed_over():
    group = members(c1="a", c2="ab", c3="abc")
    assert shown(round_robin.assign(group, {"a": 1, "b": 2, "c": 3})) == {
        "c1": "a0",
        "c2": "b0",
        "c3": "b1 c0 c1 c2",
    }


def test_more_members_than_partitions_leave_the_rest_idle():
    assert shown(round_robin.assign(members(c1="a", c2="a"), {"a": 1})) == {"c1": "a0", "c2": ""}


@given(group=members_strategy, counts=counts_strategy)
def test_each_partition_has_one_owner_who_wants_it(group, counts):
    assert_each_wanted_partition_has_one_owner(group, counts, round_robin.assign(group, counts))


@given(group=equal_members(), counts=counts_strategy)
def test_members_with_the_same_topics_differ_by_one_partition_at_most(group, counts):
    sizes = [len(assigned) for assigned in round_robin.assign(group, counts).values()]
    assert max(sizes) - min(sizes) <= 1
