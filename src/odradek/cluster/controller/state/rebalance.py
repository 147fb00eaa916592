"""Which leaders have strayed so far from the preferred replicas that they should be moved back (A7)."""

from __future__ import annotations

from odradek.cluster.controller.state.context import ControllerContext
from odradek.common.ids import TopicPartition


def strayed_partitions(context: ControllerContext, threshold_percent: int) -> list[TopicPartition]:
    """Partitions to hand back, of brokers that lead too few of those that name them first.

    Only partitions whose preferred replica lives and is in sync; a topic in deletion or a move is left alone.
    """
    preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions():
        assignment = context.assignment(partition)
        if assignment.replicas and not context.is_queued_for_deletion(partition.topic):
            preferred.setdefault(assignment.replicas[0], []).append(partition)

    strayed: list[TopicPartition] = []
    for broker_id, partitions in sorted(preferred.items()):
        away = [one for one in partitions if not _is_led_by(context, one, broker_id)]
        if len(away) * 100 > threshold_percent * len(partitions):
            strayed.extend(one for one in away if _can_return(context, one, broker_id))
    return strayed


def _is_led_by(context: ControllerContext, partition: TopicPartition, broker_id: int) -> bool:
    state = context.leadership.get(partition)
    return state is not None and state.leader == broker_id


def _can_return(context: ControllerContext, partition: TopicPartition, broker_id: int) -> bool:
    state = context.leadership.get(partition)
    return (
        state is not None
        and broker_id in state.isr
        and context.can_lead(broker_id, partition)
        and not context.assignment(partition).is_being_reassigned
    )
