"""The states of a partition as a table, and what each transition writes.

    NonExistent ──▶ New ──▶ Online ◀──▶ Offline ──▶ NonExistent

Online from New gives the partition its first leader; Online from Online or Offline is an election.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from odradek.cluster.controller.state.context import ControllerContext, LeaderAndIsr, PartitionState
from odradek.cluster.controller.state.election import Election, ElectionInput, elect, first_leader
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition

PREVIOUS_STATES: Mapping[PartitionState, frozenset[PartitionState]] = {
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
    PartitionState.OFFLINE: frozenset({PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}),
}


@dataclass(slots=True)
class PartitionPlan:
    """What a transition needs: nodes to create, nodes to change, partitions for which it is not possible."""

    created: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    changed: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    refused: dict[TopicPartition, ErrorCode] = field(default_factory=dict)


def may_become(context: ControllerContext, partition: TopicPartition, target: PartitionState) -> bool:
    """Whether the table allows this transition."""
    return context.partition_state(partition) in PREVIOUS_STATES[target]


def plan_online(
    context: ControllerContext,
    partitions: Iterable[TopicPartition],
    election: Election,
    allows_unclean: Callable[[str], bool],
) -> PartitionPlan:
    """First leaders for new partitions, elections for the others; `allows_unclean` gets the topic."""
    plan = PartitionPlan()
    for partition in partitions:
        if not may_become(context, partition, PartitionState.ONLINE):
            plan.refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif context.partition_state(partition) is PartitionState.NEW:
            _plan_first_leader(context, partition, plan)
        else:
            _plan_election(context, partition, election, allows_unclean, plan)
    return plan


def _plan_first_leader(context: ControllerContext, partition: TopicPartition, plan: PartitionPlan) -> None:
    assignment = context.assignment(partition)
    live = [id_ for id_ in assignment.replicas if context.can_lead(id_, partition)]
    state = first_leader(assignment, live, context.epoch)
    if state is None:
        plan.refused[partition] = ErrorCode.LEADER_NOT_AVAILABLE
    else:
        plan.created[partition] = state


def _plan_election(
    context: ControllerContext,
    partition: TopicPartition,
    election: Election,
    allows_unclean: Callable[[str], bool],
    plan: PartitionPlan,
) -> None:
    known = context.leadership.get(partition)
    if known is None:
        plan.refused[partition] = ErrorCode.LEADER_NOT_AVAILABLE
        return
    next_state = elect(election, _election_input(context, partition, known, allows_unclean), context.epoch)
    if next_state is not None:
        plan.changed[partition] = next_state
    elif election is Election.PREFERRED:
        plan.refused[partition] = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        plan.refused[partition] = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def _election_input(
    context: ControllerContext,
    partition: TopicPartition,
    state: LeaderAndIsr,
    allows_unclean: Callable[[str], bool],
) -> ElectionInput:
    assignment = context.assignment(partition)
    return ElectionInput(
        state=state,
        assignment=assignment,
        live=frozenset(id_ for id_ in assignment.replicas if context.is_replica_online(id_, partition)),
        shutting_down=frozenset(context.shutting_down),
        allows_unclean=allows_unclean(partition.topic),
    )
