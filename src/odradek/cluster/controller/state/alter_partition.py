"""Whether a leader's wish to change its in-sync replicas is granted (KIP-497): a decision, no write.

A leader knows the state that it was told; the controller's may be newer. Older wishes are refused with the
error that tells the leader why; a wish that is already true is granted without a write, so that a lost answer
does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from odradek.cluster.controller.state.context import ControllerContext, LeaderAndIsr, LeaderRecoveryState
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition


class IsrChange(NamedTuple):
    """What a leader asks for; `isr` maps broker to the epoch that the leader saw, -1 for unknown."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: Mapping[int, int]
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


class IsrDecision(NamedTuple):
    """The answer: an error, or the state to write, or (`is_new` False) one that is true already."""

    error: ErrorCode
    state: LeaderAndIsr | None = None
    is_new: bool = False


def judge(context: ControllerContext, partition: TopicPartition, wish: IsrChange) -> IsrDecision:
    """Grant or refuse one wish."""
    current = context.leadership.get(partition)
    if current is None or context.is_queued_for_deletion(partition.topic):
        return IsrDecision(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    error = _staleness(current, wish)
    if error is not ErrorCode.NONE:
        return IsrDecision(error)
    isr = tuple(id_ for id_ in context.assignment(partition).replicas if id_ in wish.isr)
    wished = (frozenset(isr), wish.recovery_state)
    if wished == (frozenset(current.isr), current.recovery_state):
        return IsrDecision(ErrorCode.NONE, current)
    if wish.partition_epoch < current.partition_epoch:
        return IsrDecision(ErrorCode.INVALID_UPDATE_VERSION)
    error = _invalidity(context, partition, current, wish)
    if error is not ErrorCode.NONE:
        return IsrDecision(error)
    granted = current._replace(isr=isr, recovery_state=wish.recovery_state, controller_epoch=context.epoch)
    return IsrDecision(ErrorCode.NONE, granted, is_new=True)


def _staleness(current: LeaderAndIsr, wish: IsrChange) -> ErrorCode:
    if wish.leader_epoch > current.leader_epoch or wish.partition_epoch > current.partition_epoch:
        # The leader knows more than this controller: another one must have told it.
        return ErrorCode.NOT_CONTROLLER
    if wish.leader_epoch < current.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if wish.leader != current.leader:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _invalidity(
    context: ControllerContext, partition: TopicPartition, current: LeaderAndIsr, wish: IsrChange
) -> ErrorCode:
    is_recovering = wish.recovery_state is LeaderRecoveryState.RECOVERING
    if (
        wish.leader not in wish.isr
        or not wish.isr.keys() <= set(context.assignment(partition).replicas)
        or (is_recovering and len(wish.isr) > 1)
        or (is_recovering and current.recovery_state is LeaderRecoveryState.RECOVERED)
    ):
        return ErrorCode.INVALID_REQUEST
    # A replica joins only in the life that the leader saw catching up (KIP-841, KIP-903).
    for broker_id in wish.isr.keys() - set(current.isr):
        seen_epoch = wish.isr[broker_id]
        if not context.can_lead(broker_id, partition):
            return ErrorCode.INELIGIBLE_REPLICA
        if seen_epoch not in (-1, context.broker_epoch(broker_id)):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE
