"""Decides whether a leader may change its in-sync replicas (KIP-497); writes nothing.

The controller's state may be newer than the leader's: a change based on an older state is refused with an
error that has the reason. A change that is already in force is accepted without a write, so that a lost
response does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.cluster.controller.state.context import ControllerContext, LeaderAndIsr, LeaderRecoveryState
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition


class ProposedIsr(NamedTuple):
    """What a leader asks for; `isr` maps broker to the epoch that the leader saw, -1 for unknown."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class IsrDecision(NamedTuple):
    """An error, or the state to write, or (`is_new` False) one that is already in force."""

    error: ErrorCode
    state: LeaderAndIsr | None = None
    is_new: bool = False


def decide_isr_change(
    context: ControllerContext, partition: TopicPartition, change: ProposedIsr
) -> IsrDecision:
    """Accept or refuse one change."""
    current = context.leadership.get(partition)
    # A deletion waits for the end of a reassignment, which may need this change.
    is_deleted = context.is_queued_for_deletion(partition.topic) and not (
        context.assignment(partition).is_being_reassigned
    )
    if current is None or is_deleted:
        return IsrDecision(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = _staleness(current, change)
    if error is not ErrorCode.NONE:
        return IsrDecision(error)
    isr = tuple(id_ for id_ in context.assignment(partition).replicas if id_ in change.isr)
    wanted = (frozenset(isr), change.recovery_state)
    if wanted == (frozenset(current.isr), current.recovery_state):
        return IsrDecision(ErrorCode.NONE, current)
    if change.partition_epoch < current.partition_epoch:
        return IsrDecision(ErrorCode.INVALID_UPDATE_VERSION)
    error = _invalidity(context, partition, current, change)
    if error is not ErrorCode.NONE:
        return IsrDecision(error)
    granted = current._replace(isr=isr, recovery_state=change.recovery_state, controller_epoch=context.epoch)
    return IsrDecision(ErrorCode.NONE, granted, is_new=True)


def _staleness(current: LeaderAndIsr, change: ProposedIsr) -> ErrorCode:
    if change.leader_epoch > current.leader_epoch or change.partition_epoch > current.partition_epoch:
        # The leader has a newer state than this controller: there is another controller.
        return ErrorCode.NOT_CONTROLLER
    if change.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if change.leader != current.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _invalidity(
    context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr, change: ProposedIsr
) -> ErrorCode:
    is_recovering = change.recovery_state is LeaderRecoveryState.RECOVERING
    if (
        change.leader not in change.isr
        or not change.isr.keys() <= set(context.assignment(partition).replicas)
        or (is_recovering and len(change.isr) > 1)
        or (is_recovering and current.recovery_state is LeaderRecoveryState.RECOVERED)
    ):
        return ErrorCode.INVALID_REQUEST
    # A replica joins only in the broker epoch in which the leader saw it catch up (KIP-841, KIP-903).
    for broker_id in change.isr.keys() - set(current.isr):
        seen_epoch = change.isr[broker_id]
        if not context.can_lead(broker_id, partition):
            return ErrorCode.INELIGIBLE_REPLICA
        if seen_epoch not in (-1, context.broker_epoch(broker_id)):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
