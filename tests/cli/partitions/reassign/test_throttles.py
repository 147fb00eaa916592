"""Which replicas and brokers a throttle holds for."""

from __future__ import annotations

from odradek.cli.partitions.reassign.throttles import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    Move,
    moves,
    topic_throttles,
)
from odradek.client.admin.partitions import PartitionReassignment
from odradek.common.ids import TopicPartition

FIRST, SECOND, OTHER = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_a_move_goes_from_all_present_replicas_to_the_new_ones():
    moving = moves({}, {FIRST: (1, 2)}, {FIRST: (2, 3)})
    assert moving == {FIRST: Move(frozenset({1, 2}), frozenset({3}))}


def test_a_move_under_way_keeps_its_sources():
    under_way = {
        FIRST: PartitionReassignment((3, 1, 2), (3,), (1,)),
        OTHER: PartitionReassignment((4, 5), (5,), ()),
    }
    moving = moves(under_way, {FIRST: (3, 1, 2)}, {FIRST: (2, 4)})
    assert moving == {
        FIRST: Move(frozenset({1, 2}), frozenset({4})),
        OTHER: Move(frozenset({4}), frozenset({5})),
    }


def test_each_topic_gets_its_replicas_on_either_side():
    moving = {
        FIRST: Move(frozenset({1, 2}), frozenset({3})),
        SECOND: Move(frozenset({2}), frozenset()),
        OTHER: Move(frozenset({4}), frozenset({5})),
    }
    assert topic_throttles(moving) == {
        "a": {LEADER_REPLICAS: "0:1,0:2,1:2", FOLLOWER_REPLICAS: "0:3"},
        "b": {LEADER_REPLICAS: "0:4", FOLLOWER_REPLICAS: "0:5"},
    }
