from __future__ import annotations

import pytest

from cluster.controller.contexts import EPOCH, a_context, put
from odradek.cluster.controller.state.alter_partition import ProposedIsr, decide_isr_change
from odradek.cluster.controller.state.context import LeaderAndIsr, LeaderRecoveryState
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition


def a_case():
    context = a_context(live=[1, 2, 3])
    return context, put(context, "t", 0, (1, 2, 3), leader=1, isr=(1, 2))


def a_change(*isr: int, leader=1, leader_epoch=3, partition_epoch=5, **fields) -> ProposedIsr:
    return ProposedIsr(leader, leader_epoch, partition_epoch, dict.fromkeys(isr, -1), **fields)


def test_growing_and_shrinking_are_accepted_in_order_of_assignment():
    context, partition = a_case()

    grown = decide_isr_change(context, partition, a_change(3, 2, 1))
    assert grown == (ErrorCode.NONE, LeaderAndIsr(1, 3, (1, 2, 3), EPOCH, partition_epoch=5), True)
    shrunk = decide_isr_change(context, partition, a_change(1))
    assert shrunk == (ErrorCode.NONE, LeaderAndIsr(1, 3, (1,), EPOCH, partition_epoch=5), True)


def test_an_isr_that_is_already_in_force_is_accepted_even_with_an_older_partition_epoch():
    context, partition = a_case()
    decision = decide_isr_change(context, partition, a_change(2, 1, partition_epoch=4))
    assert decision == (ErrorCode.NONE, context.leadership[partition], False)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (a_change(1, leader_epoch=2), ErrorCode.FENCED_LEADER_EPOCH),
        (a_change(1, leader_epoch=4), ErrorCode.NOT_CONTROLLER),
        (a_change(1, partition_epoch=6), ErrorCode.NOT_CONTROLLER),
        (a_change(1, partition_epoch=4), ErrorCode.INVALID_UPDATE_VERSION),
        (a_change(2, leader=2), ErrorCode.INVALID_REQUEST),
        (a_change(2), ErrorCode.INVALID_REQUEST),
        (a_change(1, 9), ErrorCode.INVALID_REQUEST),
        (a_change(1, recovery_state=LeaderRecoveryState.RECOVERING), ErrorCode.INVALID_REQUEST),
    ],
)
def test_stale_and_invalid_changes_are_refused(change, error):
    context, partition = a_case()
    decision = decide_isr_change(context, partition, change)
    assert (decision.error, decision.state) == (error, None)


def test_a_replica_of_a_dead_stopping_or_restarted_broker_does_not_join():
    context, partition = a_case()
    restarted = a_change(1, 2, 3)._replace(isr={1: -1, 2: -1, 3: 99})
    assert decide_isr_change(context, partition, restarted).error is ErrorCode.INELIGIBLE_REPLICA
    current = a_change(1, 2, 3)._replace(isr={1: -1, 2: -1, 3: 103})
    assert decide_isr_change(context, partition, current).error is ErrorCode.NONE

    context.shutting_down.add(3)
    assert decide_isr_change(context, partition, current).error is ErrorCode.INELIGIBLE_REPLICA
    del context.brokers[3]
    assert decide_isr_change(context, partition, current).error is ErrorCode.INELIGIBLE_REPLICA


def test_a_partition_unknown_or_in_deletion_is_unknown():
    context, partition = a_case()
    assert (
        decide_isr_change(context, TopicPartition("x", 0), a_change(1)).error
        is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    context.deletions.queued.add("t")
    assert decide_isr_change(context, partition, a_change(1)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_leader_that_has_recovered_may_say_so():
    context, partition = a_case()
    recovering = context.leadership[partition]._replace(
        isr=(1,), recovery_state=LeaderRecoveryState.RECOVERING
    )
    context.leadership[partition] = recovering
    decision = decide_isr_change(context, partition, a_change(1))
    assert decision.state is not None
    assert decision.state.recovery_state is LeaderRecoveryState.RECOVERED
