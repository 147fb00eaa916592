"""The replica that a consumer reads from, by its rack."""

from __future__ import annotations

from odradek.replication.replica_selector import ReadableReplica, replica_in_rack

LEADER = ReadableReplica(0, "a", 10, 0)


def test_a_replica_in_the_clients_rack_is_chosen_the_furthest_first() -> None:
    replicas = [LEADER, ReadableReplica(1, "b", 8, 5), ReadableReplica(2, "b", 9, 1)]
    assert replica_in_rack(replicas, 0, "b") == 2


def test_the_leader_is_read_from_where_no_follower_is_nearer() -> None:
    replicas = [LEADER, ReadableReplica(1, "a", 10, 5), ReadableReplica(2, None, 10, 5)]
    assert replica_in_rack(replicas, 0, "a") is None
    assert replica_in_rack(replicas, 0, "z") is None


def test_of_equal_replicas_the_one_that_caught_up_last_is_chosen() -> None:
    replicas = [LEADER, ReadableReplica(1, "b", 9, 7), ReadableReplica(2, "b", 9, 6)]
    assert replica_in_rack(replicas, 0, "b") == 1
