from __future__ import annotations

from hypothesis import given

from assignors.given_members import (
    assert_each_wanted_partition_has_one_owner,
    counts_strategy,
    members,
    members_strategy,
    shown,
)
from odradek.assignors import range as by_range
from odradek.assignors.subscription import Subscription


def test_the_first_members_get_one_partition_more():
    assert shown(by_range.assign(members(c1="a", c2="a", c3="a"), {"a": 5})) == {
        "c1": "a0 a1",
        "c2": "a2 a3",
        "c3": "a4",
    }


def test_every_topic_is_cut_by_itself():
    assert shown(by_range.assign(members(c1="ab", c2="ab"), {"a": 5, "b": 3})) == {
        "c1": "a0 a1 a2 b0 b1",
        "c2": "a3 a4 b2",
    }


def test_more_members_than_partitions_leave_the_rest_idle():
    assert shown(by_range.assign(members(c1="a", c2="a", c3="a"), {"a": 2})) == {
        "c1": "a0",
        "c2": "a1",
        "c3": "",
    }


def test_a_static_member_keeps_its_place_under_a_new_id():
    topics = frozenset("a")
    group = {"z": Subscription(topics, group_instance_id="1"), "b": Subscription(topics)}
    assert shown(by_range.assign(group, {"a": 2})) == {"z": "a0", "b": "a1"}


def test_a_topic_that_does_not_exist_gets_nobody_anything():
    assert shown(by_range.assign(members(c1="ax"), {"a": 1})) == {"c1": "a0"}


@given(group=members_strategy, counts=counts_strategy)
def test_each_partition_has_one_owner_who_wants_it(group, counts):
    assert_each_wanted_partition_has_one_owner(group, counts, by_range.assign(group, counts))


@given(group=members_strategy, counts=counts_strategy)
def test_the_readers_of_a_topic_differ_by_one_partition_at_most(group, counts):
    assignment = by_range.assign(group, counts)
    for topic in counts:
        sizes = [
            sum(partition.topic == topic for partition in assignment[member_id])
            for member_id, member in group.items()
            if topic in member.topics
        ]
        assert not sizes or max(sizes) - min(sizes) <= 1
