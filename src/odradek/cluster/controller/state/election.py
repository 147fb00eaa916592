"""Elects leaders: of new and offline partitions, preferred, after a reassignment, at a shutdown.

A leader is always the first replica in order of assignment that is alive and in sync; only an unclean
election looks further.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from typing import NamedTuple

from odradek.cluster.controller.state.context import (
    INITIAL_LEADER_EPOCH,
    LeaderAndIsr,
    LeaderRecoveryState,
    ReplicaAssignment,
)
from odradek.cluster.metadata import NO_LEADER


class Election(Enum):
    """The reason of an election."""

    OFFLINE = "offline"
    UNCLEAN = "unclean"
    PREFERRED = "preferred"
    REASSIGNED = "reassigned"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


class ElectionInput(NamedTuple):
    """One partition before its election; `live` may lead, `shutting_down` must not stay in the ISR."""

    state: LeaderAndIsr
    assignment: ReplicaAssignment
    live: frozenset[int]
    shutting_down: frozenset[int] = frozenset()
    allows_unclean: bool = False


def elect(election: Election, partition: ElectionInput, controller_epoch: int) -> LeaderAndIsr | None:
    """The partition's next state, its leader epoch raised; None when no replica qualifies."""
    isr, live = partition.state.isr, partition.live
    recovery_state = partition.state.recovery_state
    candidates: Sequence[int] = partition.assignment.replicas
    if election is Election.PREFERRED:
        candidates = candidates[:1]
    elif election is Election.REASSIGNED:
        candidates = partition.assignment.target

    leader = first_in_sync(candidates, isr, live - partition.shutting_down)
    is_unclean = leader is None and (
        election is Election.UNCLEAN or (election is Election.OFFLINE and partition.allows_unclean)
    )
    if is_unclean:
        leader = first_in_sync(candidates, candidates, live)
        recovery_state = LeaderRecoveryState.RECOVERING
    if leader is None:
        return None
    return LeaderAndIsr(
        leader=leader,
        leader_epoch=partition.state.leader_epoch + 1,
        isr=(leader,) if is_unclean else _isr_after(election, partition),
        controller_epoch=controller_epoch,
        recovery_state=recovery_state,
        partition_epoch=partition.state.partition_epoch,
    )


def first_leader(
    assignment: ReplicaAssignment, live: Collection[int], controller_epoch: int
) -> LeaderAndIsr | None:
    """The first state of a new partition: all live replicas are in sync, with nothing to copy yet."""
    isr = tuple(broker_id for broker_id in assignment.replicas if broker_id in live)
    if not isr:
        return None
    return LeaderAndIsr(isr[0], INITIAL_LEADER_EPOCH, isr, controller_epoch)


def without_replica(state: LeaderAndIsr, broker_id: int, controller_epoch: int) -> LeaderAndIsr:
    """The state once a replica is offline. The last in sync stays there: only it has every record."""
    remaining = tuple(id_ for id_ in state.isr if id_ != broker_id)
    return state._replace(
        leader=NO_LEADER if state.leader == broker_id else state.leader,
        leader_epoch=state.leader_epoch + 1,
        isr=remaining or state.isr,
        controller_epoch=controller_epoch,
    )


def first_in_sync(candidates: Sequence[int], isr: Collection[int], live: Collection[int]) -> int | None:
    """The first candidate that is live and in sync."""
    return next((id_ for id_ in candidates if id_ in live and id_ in isr), None)


def _isr_after(election: Election, partition: ElectionInput) -> tuple[int, ...]:
    """Offline replicas leave the ISR; a preferred or planned change keeps it as it is."""
    if election in (Election.OFFLINE, Election.UNCLEAN):
        return tuple(id_ for id_ in partition.state.isr if id_ in partition.live)
    if election is Election.CONTROLLED_SHUTDOWN:
        return tuple(id_ for id_ in partition.state.isr if id_ not in partition.shutting_down)
    return partition.state.isr
