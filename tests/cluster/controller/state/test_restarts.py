"""Which replicas are in an ISR only from before their broker restarted."""

from __future__ import annotations

from odradek.cluster.controller.state.context import LeaderAndIsr, PartitionReplica
from odradek.cluster.controller.state.restarts import replicas_of_restarted_brokers
from odradek.cluster.controller.state.state_nodes import ReadState
from odradek.common.ids import TopicPartition

T0 = TopicPartition("t", 0)


def found(isr: tuple[int, ...], broker_epochs: dict[int, int], written: int = 100) -> list[int]:
    nodes = {T0: ReadState(LeaderAndIsr(isr[0], 4, isr, 1), written)}
    replicas = replicas_of_restarted_brokers(nodes, broker_epochs)
    assert all(replica == PartitionReplica(T0, replica.broker_id) for replica in replicas)
    return [replica.broker_id for replica in replicas]


def test_a_broker_that_registered_after_the_isr_was_written_has_restarted():
    assert found((1, 2, 3), {1: 101, 2: 10, 3: 11}) == [1]
    assert found((1, 2, 3), {1: 101, 2: 102, 3: 11}) == [1, 2]
    assert found((1, 2), {1: 9, 2: 10, 3: 101}) == []


def test_a_broker_that_is_not_registered_is_not_found():
    assert found((1, 2, 3), {2: 10, 3: 101}) == [3]


def test_no_replica_is_found_when_all_live_members_have_restarted():
    assert found((1, 2), {1: 101, 2: 102}) == []
    assert found((1,), {1: 101, 2: 5}) == []
    assert found((1, 2), {1: 101}) == []
