"""Which reassignments and cancellations are accepted, by who is alive and in sync."""

from __future__ import annotations

import pytest

from odradek.cluster.controller.state.context import ReplicaAssignment
from odradek.cluster.controller.state.reassignment import plan_reassignment
from odradek.common.error_codes import ErrorCode

from ..contexts import a_context, put

# From replicas 0 and 1 to 2 and 3.
UNDER_WAY = ReplicaAssignment((2, 3, 0, 1), adding=(2, 3), removing=(0, 1))


@pytest.mark.parametrize(
    ("live", "leader", "isr", "is_accepted"),
    [
        ((0, 1, 2, 3), 0, (0, 1, 2), True),
        ((1, 2), 2, (1, 2), True),
        ((2, 3), 2, (2,), False),
        ((2, 3), 2, (0, 2), False),  # replica 0 is dead, and still listed
        ((3,), -1, (0,), True),  # offline: it is elected when broker 0 is back
        ((3,), -1, (2,), False),
    ],
)
def test_a_cancellation_needs_a_live_replica_in_sync_among_those_of_before(
    live: tuple[int, ...], leader: int, isr: tuple[int, ...], is_accepted: bool
):
    context = a_context(live)
    partition = put(context, "t", 0, UNDER_WAY.replicas, leader=leader, isr=isr)
    context.assign(partition, UNDER_WAY)

    plan = plan_reassignment(context, partition, None)

    assert plan.error is (ErrorCode.NONE if is_accepted else ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    assert (plan.assignment is not None) is is_accepted


def test_a_broker_that_shuts_down_is_not_counted_on():
    context = a_context((0, 2))
    partition = put(context, "t", 0, UNDER_WAY.replicas, leader=2, isr=(0, 2))
    context.assign(partition, UNDER_WAY)
    context.shutting_down.add(0)

    assert plan_reassignment(context, partition, None).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize(("live", "is_accepted"), [((0, 1, 2, 4), True), ((1, 2, 4), False)])
def test_a_leader_leaves_only_if_a_replica_of_the_new_target_can_lead(
    live: tuple[int, ...], is_accepted: bool
):
    """Replica 1 is in sync, but no election after a reassignment takes one that is to be removed."""
    context = a_context(live)
    partition = put(context, "t", 0, UNDER_WAY.replicas, leader=2, isr=(0, 1, 2))
    context.assign(partition, UNDER_WAY)

    plan = plan_reassignment(context, partition, (4, 0))

    assert (plan.error is ErrorCode.NONE) is is_accepted


def test_an_offline_partition_may_be_reassigned():
    context = a_context((1, 2))
    partition = put(context, "t", 0, (0, 1), leader=-1, isr=(0,))

    assert plan_reassignment(context, partition, (1, 2)).error is ErrorCode.NONE
