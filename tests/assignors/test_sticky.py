from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from assignors.given_members import (
    TOPICS,
    assert_each_wanted_partition_has_one_owner,
    counts_strategy,
    equal_members,
    having,
    members,
    members_strategy,
    shown,
)
from odradek.assignors import sticky
from odradek.assignors.subscription import Subscription, subscribed_partitions
from odradek.common.ids import TopicPartition


def loads(assignment):
    return sorted(len(assigned) for assigned in assignment.values())


def kept(before, after):
    return sum(
        partition in before.get(member_id, ())
        for member_id, assigned in after.items()
        for partition in assigned
    )


def test_a_member_that_leaves_is_inherited_from_and_nobody_else_moves():
    group = members(c1="ab", c2="ab", c3="ab")
    before = sticky.assign(group, {"a": 3, "b": 3})
    left = {one: member for one, member in having(group, before).items() if one != "c2"}

    after = sticky.assign(left, {"a": 3, "b": 3})

    assert kept(before, after) == 4
    assert loads(after) == [3, 3]


def test_a_new_member_takes_its_share_and_no_more():
    group = members(c1="a", c2="a")
    before = sticky.assign(group, {"a": 6})
    grown = having(group, before) | members(c3="a")

    after = sticky.assign(grown, {"a": 6})

    assert loads(after) == [2, 2, 2]
    assert kept(before, after) == 4


def test_kafkas_example_of_different_subscriptions():
    group = members(c0="a", c1="ab", c2="abc")
    assert shown(sticky.assign(group, {"a": 1, "b": 2, "c": 3})) == {
        "c0": "a0",
        "c1": "b0 b1",
        "c2": "c0 c1 c2",
    }


def test_the_claim_of_the_latest_generation_counts():
    topics, partition = frozenset("a"), TopicPartition("a", 0)
    group = {"c1": Subscription(topics, (partition,), 4), "c2": Subscription(topics, (partition,), 5)}
    assert sticky.former_owners(group, {"a": 1}) == {partition: "c2"}
    assert shown(sticky.assign(group, {"a": 1})) == {"c1": "", "c2": "a0"}


def test_two_claims_of_one_generation_cancel_each_other():
    topics, partition = frozenset("a"), TopicPartition("a", 0)
    group = {member_id: Subscription(topics, (partition,), 4) for member_id in ("c1", "c2")}
    assert sticky.former_owners(group, {"a": 1}) == {}


def test_a_chain_of_moves_evens_out_what_no_single_move_can():
    group = {
        "c1": Subscription(frozenset("a"), tuple(TopicPartition("a", index) for index in range(3))),
        "c2": Subscription(frozenset("ab"), tuple(TopicPartition("b", index) for index in range(2))),
        "c3": Subscription(frozenset("b"), (TopicPartition("b", 2),)),
    }
    assert loads(sticky.assign(group, {"a": 3, "b": 3})) == [2, 2, 2]


@given(group=members_strategy, counts=counts_strategy)
def test_each_partition_has_one_owner_who_wants_it(group, counts):
    assert_each_wanted_partition_has_one_owner(group, counts, sticky.assign(group, counts))


@given(group=members_strategy, counts=counts_strategy)
def test_an_assignment_that_is_balanced_stays_as_it_is(group, counts):
    before = sticky.assign(group, counts)
    after = sticky.assign(having(group, before), counts)
    assert {one: sorted(assigned) for one, assigned in after.items()} == {
        one: sorted(assigned) for one, assigned in before.items()
    }


@given(before=equal_members(), after=equal_members(), counts=counts_strategy)
def test_with_equal_subscriptions_loads_differ_by_one_and_as_much_as_can_be_is_kept(before, after, counts):
    was = sticky.assign(before, counts)
    group = {one: having(before, was).get(one, member) for one, member in after.items()}
    group = {one: Subscription(after[one].topics, member.owned, 1) for one, member in group.items()}

    now = sticky.assign(group, counts)

    assert_each_wanted_partition_has_one_owner(group, counts, now)
    sizes = loads(now)
    assert sizes[-1] - sizes[0] <= 1
    share, extra = divmod(sum(sizes), len(sizes))
    valid = sticky.former_owners(group, counts)
    had = sorted((sum(owner == one for owner in valid.values()) for one in group), reverse=True)
    most = sum(min(count, share + (place < extra)) for place, count in enumerate(had))
    assert kept(was, now) == most


small_counts = st.dictionaries(st.sampled_from(TOPICS[:3]), st.integers(1, 2), min_size=1)


@settings(max_examples=60)
@given(group=members_strategy, counts=small_counts, owners=st.randoms(use_true_random=False))
def test_no_assignment_at_all_is_more_even(group, counts, owners):
    group = dict(list(group.items())[:4])
    partitions = subscribed_partitions(group, counts)
    readers = [[one for one in group if partition.topic in group[one].topics] for partition in partitions]
    owned: dict[str, list[TopicPartition]] = {one: [] for one in group}
    for partition, able in zip(partitions, readers, strict=True):
        owned[owners.choice(able)].append(partition)

    after = sticky.assign(having(group, owned), counts)

    def squares(sizes):
        return sum(size * size for size in sizes)

    best = min(squares([choice.count(one) for one in group]) for choice in product(*readers))
    assert squares(loads(after)) == best
