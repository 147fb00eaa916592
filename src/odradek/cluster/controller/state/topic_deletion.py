"""When a topic may go: every replica has confirmed that its files are gone.

A deletion tells every broker that the topic is leaving, then asks each replica to delete. A replica on a dead
broker or a failed disk halts it; the broker's return starts it again. After the last confirmation the topic's
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
    """The replicas of a topic in deletion: those that can be asked, and those that cannot."""

    reachable: list[PartitionReplica]
    unreachable: list[PartitionReplica]


def next_steps(context: ControllerContext) -> DeletionSteps:
    """Topics whose nodes can go, topics to begin with, failed replicas to try again."""
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
    """Whom to ask to delete; those that have already confirmed are left alone."""
    split = ReplicaSplit([], [])
    for topic in topics:
        for replica in context.replicas_of_topic(topic):
            if context.replica_state(replica) is ReplicaState.DELETION_SUCCESSFUL:
                continue
            reachable = context.is_replica_online(replica.broker_id, replica.partition)
            (split.reachable if reachable else split.unreachable).append(replica)
    return split


def is_halted(context: ControllerContext, topic: str) -> bool:
    """Whether a deletion cannot even begin: a replica out of reach, or a move under way."""
    return bool(split_replicas(context, [topic]).unreachable) or any(
        assignment.is_being_reassigned for assignment in context.assignments.get(topic, {}).values()
    )
