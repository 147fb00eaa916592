"""Decides the steps of topic deletion; a topic is deleted once every replica has deleted its files.

A deletion first notifies every broker, then requests each replica to delete. A replica on an offline broker
or a failed disk halts it until the broker starts again. After the last confirmation the topic's
nodes in the store are removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.cluster.controller.state.context import ControllerContext, PartitionReplica, ReplicaState


class DeletionSteps(NamedTuple):
    """What can be done for the queued topics now."""

    complete: list[str]
    begin: list[str]
    retry: list[PartitionReplica]


class ReplicaSplit(NamedTuple):
    """The replicas of a topic in deletion: those that are reachable, and those that are not."""

    reachable: list[PartitionReplica]
    unreachable: list[PartitionReplica]


def next_steps(context: ControllerContext) -> DeletionSteps:
    """Topics whose nodes can be removed, topics to begin with, failed replicas to retry."""
    steps = DeletionSteps([], [], [])
    for topic in sorted(context.deletions.queued):
        states = {replica: context.replica_state(replica) for replica in context.replicas_of_topic(topic)}
        if all(state is ReplicaState.DELETION_SUCCESSFUL for state in states.values()):
            steps.complete.append(topic)
            continue
        if ReplicaState.DELETION_STARTED in states.values() or topic in context.deletions.ineligible:
            continue
        steps.begin.append(topic)
        steps.retry.extend(
            replica for replica, state in states.items() if state is ReplicaState.DELETION_INELIGIBLE
        )
    return steps


def split_replicas(context: ControllerContext, topics: Iterable[str]) -> ReplicaSplit:
    """The replicas to be deleted; those already deleted are left out."""
    split = ReplicaSplit([], [])
    for topic in topics:
        for replica in context.replicas_of_topic(topic):
            if context.replica_state(replica) is ReplicaState.DELETION_SUCCESSFUL:
                continue
            reachable = context.is_replica_online(replica.broker_id, replica.partition)
            (split.reachable if reachable else split.unreachable).append(replica)
    return split


def is_halted(context: ControllerContext, topic: str) -> bool:
    """Whether a deletion cannot even begin: a replica is offline, or a reassignment is in progress."""
    return bool(split_replicas(context, [topic]).unreachable) or any(
        assignment.is_being_reassigned for assignment in context.assignments.get(topic, {}).values()
    )
