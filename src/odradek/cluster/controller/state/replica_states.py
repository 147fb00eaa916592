"""The states of one replica as a table, and what each transition does.

NonExistent ──▶ New ──▶ Online ◀──▶ Offline ──▶ DeletionStarted ──▶ DeletionSuccessful ──▶ NonExistent
                                       ▲               │
                                       └─ DeletionIneligible (dead broker, failed disk) ◀┘
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from odradek.cluster.controller.state.context import (
    ControllerContext,
    LeaderAndIsr,
    PartitionReplica,
    ReplicaState,
)
from odradek.cluster.controller.state.election import without_replica
from odradek.common.ids import TopicPartition

_S = ReplicaState

PREVIOUS_STATES: Mapping[ReplicaState, frozenset[ReplicaState]] = {
    _S.NEW: frozenset({_S.NON_EXISTENT}),
    _S.ONLINE: frozenset({_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE}),
    _S.OFFLINE: frozenset({_S.NEW, _S.ONLINE, _S.OFFLINE, _S.DELETION_INELIGIBLE}),
    _S.DELETION_STARTED: frozenset({_S.OFFLINE}),
    _S.DELETION_SUCCESSFUL: frozenset({_S.DELETION_STARTED}),
    _S.DELETION_INELIGIBLE: frozenset({_S.OFFLINE, _S.DELETION_STARTED}),
    _S.NON_EXISTENT: frozenset({_S.DELETION_SUCCESSFUL}),
}


@dataclass(slots=True)
class ReplicaPlan:
    """What a transition needs: allowed changes, and partitions whose ISR shrinks by them."""

    moved: list[PartitionReplica] = field(default_factory=list)
    refused: list[PartitionReplica] = field(default_factory=list)
    changed: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)


def may_become(context: ControllerContext, replica: PartitionReplica, target: ReplicaState) -> bool:
    """Whether the table allows this transition."""
    return context.replica_state(replica) in PREVIOUS_STATES[target]


def plan_move(
    context: ControllerContext, replicas: Iterable[PartitionReplica], target: ReplicaState
) -> ReplicaPlan:
    """Split the replicas into those that may change to `target` and the others."""
    plan = ReplicaPlan()
    for replica in replicas:
        allowed = may_become(context, replica, target)
        (plan.moved if allowed else plan.refused).append(replica)
    if target is ReplicaState.OFFLINE:
        _plan_shrinking(context, plan)
    return plan


def _plan_shrinking(context: ControllerContext, plan: ReplicaPlan) -> None:
    """Remove offline replicas from ISR and leadership; one write per partition."""
    for partition, broker_id in plan.moved:
        known = context.leadership.get(partition)
        if known is None or context.is_queued_for_deletion(partition.topic):
            continue
        state = plan.changed.get(partition, known)
        if broker_id != state.leader and broker_id not in state.isr:
            continue
        shrunk = without_replica(state, broker_id, context.epoch)
        if (shrunk.leader, shrunk.isr) != (known.leader, known.isr):
            plan.changed[partition] = shrunk._replace(leader_epoch=known.leader_epoch + 1)
