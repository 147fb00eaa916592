from __future__ import annotations

from cluster.controller.contexts import a_context, put
from odradek.cluster.controller.state.context import PartitionReplica, ReplicaAssignment, ReplicaState
from odradek.cluster.controller.state.topic_deletion import is_halted, next_steps, split_replicas


def test_a_queued_topic_begins_waits_and_completes():
    context = a_context(live=[1, 2])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))
    replicas = [PartitionReplica(partition, 1), PartitionReplica(partition, 2)]
    assert next_steps(context) == ([], [], [])

    context.deletions.queued.add("t")
    assert next_steps(context) == ([], ["t"], [])

    for replica in replicas:
        context.set_replica_state(replica, ReplicaState.DELETION_STARTED)
    assert next_steps(context) == ([], [], [])

    context.set_replica_state(replicas[0], ReplicaState.DELETION_SUCCESSFUL)
    assert next_steps(context) == ([], [], [])

    context.set_replica_state(replicas[1], ReplicaState.DELETION_SUCCESSFUL)
    assert next_steps(context) == (["t"], [], [])


def test_a_dead_broker_halts_a_deletion_until_it_is_lifted():
    context = a_context(live=[1])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))
    context.deletions.queued.add("t")
    dead = PartitionReplica(partition, 2)

    assert is_halted(context, "t")
    assert split_replicas(context, ["t"]) == ([PartitionReplica(partition, 1)], [dead])

    context.set_replica_state(PartitionReplica(partition, 1), ReplicaState.DELETION_SUCCESSFUL)
    context.set_replica_state(dead, ReplicaState.DELETION_INELIGIBLE)
    context.deletions.ineligible.add("t")
    assert next_steps(context) == ([], [], [])

    context.deletions.ineligible.clear()
    assert next_steps(context) == ([], ["t"], [dead])


def test_a_topic_that_is_being_moved_is_not_deleted_under_the_move():
    context = a_context(live=[1, 2])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))
    assert not is_halted(context, "t")
    context.assign(partition, ReplicaAssignment((1, 2), adding=(2,)))
    assert is_halted(context, "t")


def test_a_removed_topic_leaves_no_trace():
    context = a_context(live=[1])
    partition = put(context, "t", 0, (1,), leader=1, isr=(1,))
    context.deletions.queued.add("t")
    context.offline_directories[1] = {partition}

    context.remove_topic("t")

    context.offline_directories.clear()
    assert context == a_context(live=[1])
