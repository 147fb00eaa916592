"""Which transitions of the controller's state machines the schedules have made, beside those that exist."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from odradek.cluster.controller.state.context import ControllerContext, PartitionState, ReplicaState
from odradek.cluster.controller.state.partition_states import PREVIOUS_STATES as PARTITION_TRANSITIONS
from odradek.cluster.controller.state.replica_states import PREVIOUS_STATES as REPLICA_TRANSITIONS

Transitions = Counter[str]

RARE_TRANSITIONS = frozenset(
    {
        "partition NewPartition -> OfflinePartition",
        "replica NewReplica -> OfflineReplica",
        "replica OfflineReplica -> ReplicaDeletionIneligible",
        "replica OnlineReplica -> OnlineReplica",
        "replica ReplicaDeletionIneligible -> OnlineReplica",
        "replica ReplicaDeletionStarted -> ReplicaDeletionIneligible",
    }
)
"""Those that a thousand schedules need not make; each of the others must be made by one."""


def every_transition() -> list[str]:
    """The names of all transitions that the tables allow."""
    names = [
        _name("partition", before, after) for after, all_ in PARTITION_TRANSITIONS.items() for before in all_
    ]
    names += [
        _name("replica", before, after) for after, all_ in REPLICA_TRANSITIONS.items() for before in all_
    ]
    return sorted(names)


@contextlib.contextmanager
def counted_transitions(counts: Transitions) -> Iterator[None]:
    """Count the transitions of every controller meanwhile; what a new controller finds is none."""
    possible = set(every_transition())
    set_partition, set_replica = ControllerContext.set_partition_state, ControllerContext.set_replica_state

    def count_partition(context: ControllerContext, partition: Any, state: PartitionState) -> None:
        name = _name("partition", context.partition_state(partition), state)
        counts.update({name} & possible)
        set_partition(context, partition, state)

    def count_replica(context: ControllerContext, replica: Any, state: ReplicaState) -> None:
        name = _name("replica", context.replica_state(replica), state)
        counts.update({name} & possible)
        set_replica(context, replica, state)

    ControllerContext.set_partition_state = count_partition  # type: ignore[assignment, method-assign]
    ControllerContext.set_replica_state = count_replica  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        ControllerContext.set_partition_state = set_partition  # type: ignore[method-assign]
        ControllerContext.set_replica_state = set_replica  # type: ignore[method-assign]


def _name(machine: str, before: PartitionState | ReplicaState, after: PartitionState | ReplicaState) -> str:
    return f"{machine} {before.value} -> {after.value}"
