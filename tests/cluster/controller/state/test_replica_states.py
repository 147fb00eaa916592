from __future__ import annotations

from cluster.controller.contexts import EPOCH, a_context, put
from odradek.cluster.controller.state.context import LeaderAndIsr, PartitionReplica, ReplicaState
from odradek.cluster.controller.state.replica_states import PREVIOUS_STATES, plan_move

S = ReplicaState


def test_every_state_can_be_reached_and_left():
    assert set(PREVIOUS_STATES) == set(S)
    assert set().union(*PREVIOUS_STATES.values()) == set(S)


def test_moves_that_the_table_lacks_are_refused():
    context = a_context(live=[1])
    replica = PartitionReplica(put(context, "t", 0, (1,), leader=1, isr=(1,)), 1)

    for target in (S.NEW, S.DELETION_STARTED, S.DELETION_SUCCESSFUL, S.NON_EXISTENT):
        plan = plan_move(context, [replica], target)
        assert (plan.moved, plan.refused) == ([], [replica])


def test_an_offline_replica_leaves_the_isr_and_the_lead():
    context = a_context(live=[1, 2, 3])
    led = put(context, "led", 0, (1, 2), leader=1, isr=(1, 2))
    followed = put(context, "followed", 0, (2, 1), leader=2, isr=(2, 1))
    out_of_sync = put(context, "out", 0, (2, 1), leader=2, isr=(2,))

    plan = plan_move(context, [PartitionReplica(one, 1) for one in (led, followed, out_of_sync)], S.OFFLINE)

    assert len(plan.moved) == 3
    assert plan.changed == {
        led: LeaderAndIsr(-1, 4, (2,), EPOCH, partition_epoch=5),
        followed: LeaderAndIsr(2, 4, (2,), EPOCH, partition_epoch=5),
    }


def test_two_replicas_of_a_partition_leave_in_one_write_and_the_last_stays():
    context = a_context(live=[])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))

    plan = plan_move(context, [PartitionReplica(partition, 1), PartitionReplica(partition, 2)], S.OFFLINE)

    assert plan.changed == {partition: LeaderAndIsr(-1, 4, (2,), EPOCH, partition_epoch=5)}


def test_a_topic_in_deletion_keeps_its_state_nodes_as_they_are():
    context = a_context(live=[1])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))
    context.deletions.queued.add("t")

    plan = plan_move(context, [PartitionReplica(partition, 1)], S.OFFLINE)

    assert plan.changed == {}
    assert len(plan.moved) == 1
