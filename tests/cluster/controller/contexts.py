"""Builds a controller's context from a short table: partition, replicas, leader, ISR."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.cluster.controller.state.context import (
    ControllerContext,
    LeaderAndIsr,
    PartitionReplica,
    PartitionState,
    ReplicaAssignment,
    ReplicaState,
)
from odradek.cluster.membership.brokers import Broker, Endpoint
from odradek.common.ids import TopicPartition

LISTENER = "PLAINTEXT"
EPOCH = 7


def a_broker(broker_id: int) -> Broker:
    return Broker(broker_id, (Endpoint(LISTENER, f"host{broker_id}", 9092),), epoch=100 + broker_id)


def a_context(live: Iterable[int] = (), topics: Iterable[str] = ()) -> ControllerContext:
    context = ControllerContext(epoch=EPOCH, brokers={id_: a_broker(id_) for id_ in live})
    for number, topic in enumerate(topics, start=1):
        context.topic_ids[topic] = number.to_bytes(16)
    return context


def put(
    context: ControllerContext,
    topic: str,
    index: int,
    replicas: tuple[int, ...],
    *,
    leader: int,
    isr: tuple[int, ...],
    leader_epoch: int = 3,
    partition_epoch: int = 5,
) -> TopicPartition:
    """An online partition whose replicas stand where their brokers do."""
    partition = TopicPartition(topic, index)
    context.topic_ids.setdefault(topic, (len(context.topic_ids) + 1).to_bytes(16))
    context.assign(partition, ReplicaAssignment(replicas))
    context.leadership[partition] = LeaderAndIsr(
        leader, leader_epoch, isr, EPOCH - 1, partition_epoch=partition_epoch
    )
    context.set_partition_state(partition, PartitionState.ONLINE)
    for broker_id in replicas:
        state = ReplicaState.ONLINE if broker_id in context.brokers else ReplicaState.OFFLINE
        context.set_replica_state(PartitionReplica(partition, broker_id), state)
    return partition
