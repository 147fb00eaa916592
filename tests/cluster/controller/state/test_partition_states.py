from __future__ import annotations

from cluster.controller.contexts import EPOCH, a_context, put
from odradek.cluster.controller.state.context import LeaderAndIsr, PartitionState, ReplicaAssignment
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.partition_states import PREVIOUS_STATES, may_become, plan_online
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition

S = PartitionState


def never(topic: str) -> bool:
    return False


def test_the_table_has_exactly_kafkas_arrows():
    arrows = {(previous, target) for target, sources in PREVIOUS_STATES.items() for previous in sources}
    assert arrows == {
        (S.NON_EXISTENT, S.NEW),
        (S.NEW, S.ONLINE),
        (S.ONLINE, S.ONLINE),
        (S.OFFLINE, S.ONLINE),
        (S.NEW, S.OFFLINE),
        (S.ONLINE, S.OFFLINE),
        (S.OFFLINE, S.OFFLINE),
        (S.OFFLINE, S.NON_EXISTENT),
    }


def test_a_new_partition_gets_a_node_and_an_online_one_an_election():
    context = a_context(live=[1, 2])
    new = TopicPartition("t", 0)
    context.assign(new, ReplicaAssignment((2, 1)))
    context.set_partition_state(new, S.NEW)
    lost = put(context, "t", 1, (3, 1), leader=3, isr=(3, 1))

    plan = plan_online(context, [new, lost], Election.OFFLINE, never)

    assert plan.created == {new: LeaderAndIsr(2, 0, (2, 1), EPOCH)}
    assert plan.changed == {lost: LeaderAndIsr(1, 4, (1,), EPOCH, partition_epoch=5)}
    assert plan.refused == {}


def test_partitions_without_an_eligible_leader_are_refused_with_the_error_for_the_reason():
    context = a_context(live=[1, 2])
    new = TopicPartition("t", 0)
    context.assign(new, ReplicaAssignment((9,)))
    context.set_partition_state(new, S.NEW)
    lost = put(context, "t", 1, (3, 1), leader=3, isr=(3,))
    unknown = TopicPartition("t", 2)

    refused = plan_online(context, [new, lost, unknown], Election.OFFLINE, never).refused
    assert refused == {
        new: ErrorCode.LEADER_NOT_AVAILABLE,
        lost: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    refused = plan_online(context, [lost], Election.PREFERRED, never).refused
    assert refused == {lost: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}


def test_unclean_elections_are_allowed_by_topic():
    context = a_context(live=[1])
    unclean = put(context, "unclean", 0, (3, 1), leader=3, isr=(3,))
    clean = put(context, "clean", 0, (3, 1), leader=3, isr=(3,))

    plan = plan_online(context, [unclean, clean], Election.OFFLINE, lambda topic: topic == "unclean")

    assert plan.changed[unclean].leader == 1
    assert plan.refused == {clean: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


def test_a_replica_on_a_failed_disk_does_not_lead():
    context = a_context(live=[1, 2])
    partition = put(context, "t", 0, (1, 2), leader=1, isr=(1, 2))
    context.offline_directories[1] = {partition}

    plan = plan_online(context, [partition], Election.OFFLINE, never)

    assert plan.changed[partition].leader == 2
    assert plan.changed[partition].isr == (2,)


def test_a_partition_that_exists_is_not_new_again():
    context = a_context(live=[1])
    partition = put(context, "t", 0, (1,), leader=1, isr=(1,))
    assert not may_become(context, partition, S.NEW)
    assert not may_become(context, partition, S.NON_EXISTENT)
