"""Which partitions need a preferred election because the imbalance exceeds the limit."""

from __future__ import annotations

from odradek.cluster.controller.state.context import ControllerContext
from odradek.common.ids import TopicPartition


def imbalanced_partitions(context: ControllerContext, threshold_percent: int) -> list[TopicPartition]:
    """Partitions to move back to brokers that lead too few of those that prefer them.

    Only partitions whose preferred replica is live and in sync, and that are not being deleted or reassigned.
    """
    preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions():
        assignment = context.assignment(partition)
        if assignment.replicas and not context.is_queued_for_deletion(partition.topic):
            preferred.setdefault(assignment.replicas[0], []).append(partition)

    imbalanced: list[TopicPartition] = []
    for broker_id, partitions in sorted(preferred.items()):
        away = [one for one in partitions if not _is_led_by(context, one, broker_id)]
        if len(away) * 100 > threshold_percent * len(partitions):
            imbalanced.extend(one for one in away if _can_return(context, one, broker_id))
    return imbalanced


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
