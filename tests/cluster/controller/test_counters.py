"""What a controller counts."""

from __future__ import annotations

from odradek.cluster.controller.counters import ElectionCounters
from odradek.cluster.controller.state.context import ControllerContext, PartitionState
from odradek.common.ids import TopicPartition


def test_a_leader_that_was_not_in_sync_is_an_unclean_election() -> None:
    counters = ElectionCounters()
    counters.count(1, isr_before=(0, 1))
    counters.count(2, isr_before=(0, 1))
    assert (counters.elections, counters.unclean) == (2, 1)


def test_partitions_without_a_leader_are_offline_unless_their_topic_is_being_deleted() -> None:
    context = ControllerContext()
    states = {0: PartitionState.ONLINE, 1: PartitionState.OFFLINE, 2: PartitionState.NEW}
    for index, state in states.items():
        context.set_partition_state(TopicPartition("a", index), state)
    context.set_partition_state(TopicPartition("gone", 0), PartitionState.OFFLINE)
    context.deletions.queued.add("gone")
    assert context.offline_partitions() == 2
