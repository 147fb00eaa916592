"""Reads and writes the state node of each partition, many in one transaction.

A write has the version that the controller knows (the partition epoch). A partition with a concurrent write
is returned, to be read and decided again; the others of its transaction are written without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from odradek.cluster.controller.fenced_store import FencedStore
from odradek.cluster.controller.state.context import LeaderAndIsr, LeaderRecoveryState
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode, OperationRefused
from odradek.coordination.payloads import PartitionStateNode
from odradek.coordination.store import Create, NodeStat, Operation, SetData, Store, Watcher

logger = logging.getLogger(__name__)

# Some 200 bytes each; a ZooKeeper transaction may have 1 MiB.
STATES_PER_WRITE = 500
READS_AT_ONCE = 200

States = dict[TopicPartition, LeaderAndIsr]


class Written(NamedTuple):
    """The states as written, with their new partition epochs, and the partitions with concurrent writes."""

    states: States
    conflicts: list[TopicPartition]


class ReadState(NamedTuple):
    """A state as it was read, and the transaction that wrote it."""

    state: LeaderAndIsr
    zxid: int


async def read_states(store: Store, partitions: Iterable[TopicPartition]) -> States:
    """The state nodes that are there."""
    return {one: read.state for one, read in (await read_state_nodes(store, partitions)).items()}


async def read_state_nodes(
    store: Store, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, ReadState]:
    """The state nodes that are there, with the transactions that wrote them."""
    found: dict[TopicPartition, ReadState] = {}
    for chunk in _chunks(partitions, READS_AT_ONCE):
        states = await asyncio.gather(*(_read_state(store, partition) for partition in chunk))
        found.update((one, state) for one, state in zip(chunk, states, strict=True) if state is not None)
    return found


async def existing_states(
    store: Store, partitions: Iterable[TopicPartition], watcher: Watcher
) -> set[TopicPartition]:
    """Those of the partitions that have a state node; the watcher is called when one of them is written."""
    found: set[TopicPartition] = set()
    for chunk in _chunks(partitions, READS_AT_ONCE):
        stats = await asyncio.gather(*(store.exists(paths.partition_state(one), watcher) for one in chunk))
        found.update(one for one, stat in zip(chunk, stats, strict=True) if stat is not None)
    return found


async def create_states(fenced: FencedStore, states: States, topics_with_nodes: set[str]) -> Written:
    """Create the nodes of new partitions; `topics_with_nodes` have the parent node already."""
    written = Written({}, [])
    for chunk in _chunks(states, STATES_PER_WRITE):
        parents = {one.topic for one in chunk} - topics_with_nodes
        operations: list[Operation] = [Create(paths.topic_partitions(topic)) for topic in sorted(parents)]
        for partition in chunk:
            operations.append(Create(paths.topic_partition(partition)))
            operations.append(Create(paths.partition_state(partition), _encode(states[partition])))
        try:
            await fenced.write(operations)
        except OperationRefused as refusal:
            # A controller that failed meanwhile, or another tool, has left nodes behind.
            logger.warning("creating state nodes of new partitions one by one: %s", refusal)
            created = [one for one in chunk if await _create_what_is_missing(fenced, one, states[one])]
            written.conflicts.extend(one for one in chunk if one not in created)
        else:
            created = chunk
        topics_with_nodes |= parents
        written.states.update((one, states[one]._replace(partition_epoch=0)) for one in created)
    return written


async def change_states(fenced: FencedStore, states: States) -> Written:
    """Replace the states that the controller knows."""
    written = Written({}, [])
    for chunk in _chunks(states, STATES_PER_WRITE):
        remaining = list(chunk)
        while remaining:
            operations = [
                SetData(paths.partition_state(one), _encode(states[one]), states[one].partition_epoch)
                for one in remaining
            ]
            try:
                results = await fenced.write(operations)
            except OperationRefused as refusal:
                logger.warning("a state node was changed concurrently: %s", refusal)
                written.conflicts.append(remaining.pop(refusal.operation_index))
                continue
            for partition, stat in zip(remaining, results, strict=True):
                assert isinstance(stat, NodeStat)
                written.states[partition] = states[partition]._replace(partition_epoch=stat.version)
            break
    return written


async def _create_what_is_missing(
    fenced: FencedStore, partition: TopicPartition, state: LeaderAndIsr
) -> bool:
    """Create the state node and missing parents; False if the partition has a state already."""
    wanted = [
        Create(paths.topic_partitions(partition.topic)),
        Create(paths.topic_partition(partition)),
        Create(paths.partition_state(partition), _encode(state)),
    ]
    missing = [one for one in wanted if await fenced.store.exists(one.path) is None]
    if wanted[-1] not in missing:
        return False
    try:
        await fenced.write(missing)
    except OperationRefused as refusal:
        logger.warning("state node of %s: %s", partition, refusal)
        return False
    return True


async def _read_state(store: Store, partition: TopicPartition) -> ReadState | None:
    try:
        node = await store.get(paths.partition_state(partition))
        found = PartitionStateNode.decode(node.payload)
    except NoNode:
        return None
    except DamagedPayload as damage:
        # Without an ISR no leader can be elected; it stays offline until the node is repaired.
        logger.error("the state of %s cannot be read: %s", partition, damage)
        return None
    state = LeaderAndIsr(
        leader=found.leader,
        leader_epoch=found.leader_epoch,
        isr=found.isr,
        controller_epoch=found.controller_epoch,
        recovery_state=LeaderRecoveryState(found.is_recovering),
        partition_epoch=node.stat.version,
    )
    return ReadState(state, node.stat.mzxid)


def _encode(state: LeaderAndIsr) -> bytes:
    is_recovering = state.recovery_state is LeaderRecoveryState.RECOVERING
    return PartitionStateNode(
        state.leader, state.leader_epoch, state.isr, state.controller_epoch, is_recovering
    ).encode()


def _chunks(partitions: Iterable[TopicPartition], size: int) -> Iterator[list[TopicPartition]]:
    remaining = iter(partitions)
    while chunk := list(islice(remaining, size)):
        yield chunk
