"""Decides how a partition gets other replicas (KIP-455); writes nothing.

While a reassignment lasts, the assignment has the replicas of before and of after. It is complete when every
replica of after is in sync; then those that are not wanted any more are removed.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.cluster.controller.state.context import ControllerContext, ReplicaAssignment
from odradek.cluster.metadata import NO_LEADER
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition


class ReassignmentPlan(NamedTuple):
    """The assignment to write, or an error and its message."""

    assignment: ReplicaAssignment | None
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_reassignment(
    context: ControllerContext,
    partition: TopicPartition,
    target: tuple[int, ...] | None,
    *,
    allows_other_factor: bool = True,
) -> ReassignmentPlan:
    """What a request for these replicas means; None cancels a reassignment."""
    current = context.assignment(partition)
    if not current.replicas or context.is_queued_for_deletion(partition.topic):
        return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if target is None:
        if not current.is_being_reassigned:
            return _refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)
        target = current.origin
    else:
        problem = _problem(target)
        if problem is not None:
            return _refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        if not allows_other_factor and len(target) != len(current.origin):
            message = f"The replication factor is {len(current.origin)}, and would become {len(target)}."
            return _refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    planned = towards(current, target)
    offline = [id_ for id_ in planned.adding if id_ not in context.brokers]
    if offline:
        return _refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"Brokers {offline} are not online.")
    if _leaves_no_leader(context, partition, planned):
        return _refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "No replica that stays is live and in sync, only such as would be removed at once: records could "
            "be lost.",
        )
    return ReassignmentPlan(planned)


def towards(current: ReplicaAssignment, target: tuple[int, ...]) -> ReplicaAssignment:
    """The assignment that leads to these replicas; one in progress is replaced."""
    replicas = tuple(dict.fromkeys((*target, *current.origin)))
    return ReplicaAssignment(
        replicas,
        adding=tuple(id_ for id_ in replicas if id_ not in current.origin),
        removing=tuple(id_ for id_ in replicas if id_ not in target),
    )


def is_complete(context: ControllerContext, partition: TopicPartition) -> bool:
    """Whether every replica that is to stay is in sync."""
    state = context.leadership.get(partition)
    return state is not None and set(context.assignment(partition).target) <= set(state.isr)


def _problem(target: tuple[int, ...]) -> str | None:
    if not target:
        return "The list of replicas is empty."
    if len(set(target)) != len(target):
        return f"A broker is named twice: {list(target)}."
    if min(target) < 0:
        return f"A broker id cannot be negative: {list(target)}."
    return None


def _leaves_no_leader(
    context: ControllerContext, partition: TopicPartition, planned: ReplicaAssignment
) -> bool:
    """Whether replicas would be removed without which nobody can lead.

    Of a partition with live replicas in sync these count; of one that is offline, those that may come back.
    """
    state = context.leadership.get(partition)
    if state is None:
        return False
    live = {id_ for id_ in state.isr if context.can_lead(id_, partition)}
    # An election at the end of a reassignment takes a replica of the target (`election.py`).
    leader_leaves = state.leader != NO_LEADER and state.leader not in planned.replicas
    staying = planned.target if leader_leaves else planned.replicas
    return not (live or set(state.isr)) & set(staying)


def _refused(error: ErrorCode, message: str | None) -> ReassignmentPlan:
    return ReassignmentPlan(None, error, message)
