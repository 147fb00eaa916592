"""Finds replicas whose broker has restarted since they came in sync, though no controller has noticed it.

A broker that dies together with the controller may be registered again before another is elected. Its
replicas are then still in the ISR from before the restart, whatever their disks hold now, even nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.cluster.controller.state.context import PartitionReplica
from odradek.cluster.controller.state.state_nodes import ReadState
from odradek.common.ids import TopicPartition


def replicas_of_restarted_brokers(
    nodes: Mapping[TopicPartition, ReadState], broker_epochs: Mapping[int, int]
) -> list[PartitionReplica]:
    """Live members of an ISR that was written before their broker registered.

    None of a partition whose live members have all restarted: any of them may be the one with every record.
    `broker_epochs`: of the live brokers; the transaction of each registration, as `ReadState.zxid`.
    """
    found = []
    for partition, (state, zxid) in nodes.items():
        live = [id_ for id_ in state.isr if id_ in broker_epochs]
        restarted = [id_ for id_ in live if broker_epochs[id_] > zxid]
        if len(restarted) < len(live):
            found += [PartitionReplica(partition, id_) for id_ in restarted]
    return found
