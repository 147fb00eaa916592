"""State transitions: checked by the tables, written to the store, then to the context and to requests.

Nothing is changed or sent before it is written, so that a controller whose write is refused has sent nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable

from odradek.cluster.controller.counters import ElectionCounters
from odradek.cluster.controller.fenced_store import FencedStore
from odradek.cluster.controller.requests import RequestBatch
from odradek.cluster.controller.state import partition_states, replica_states
from odradek.cluster.controller.state.context import (
    ControllerContext,
    PartitionReplica,
    PartitionState,
    ReplicaState,
)
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.state_nodes import (
    States,
    change_states,
    create_states,
    existing_states,
    read_states,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination.store import Watcher

logger = logging.getLogger(__name__)

# Each round reads what others wrote; more than one means repeated concurrent writes.
CONFLICT_ROUNDS = 5

Refusals = dict[TopicPartition, ErrorCode]


class Transitions:
    """Owned by the controller's event loop; for one controller epoch."""

    def __init__(
        self,
        context: ControllerContext,
        fenced: FencedStore,
        batch: RequestBatch,
        allows_unclean: Callable[[str], bool],
        load_settings: Callable[[str], Awaitable[None]],
        elections: ElectionCounters | None = None,
        on_damaged_state: Watcher = lambda _: None,
    ) -> None:
        """`load_settings` reads the settings of a topic, so that `allows_unclean` knows them.

        `on_damaged_state` is called when a damaged state node was written or removed.
        """
        self._context = context
        self._fenced = fenced
        self._batch = batch
        self._allows_unclean = allows_unclean
        self._load_settings = load_settings
        self._elections = elections or ElectionCounters()
        self._on_damaged_state = on_damaged_state

    # Partitions

    def add_new_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """NonExistent to New: it has an assignment, and no leader yet."""
        partitions = list(partitions)
        self._context.unreadable.difference_update(partitions)
        self._set_partitions(partitions, PartitionState.NEW)

    def take_partitions_offline(self, partitions: Iterable[TopicPartition]) -> None:
        """To Offline: its leader has failed."""
        self._set_partitions(partitions, PartitionState.OFFLINE)

    def remove_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Offline to NonExistent: its topic is being deleted."""
        self._set_partitions(partitions, PartitionState.NON_EXISTENT)

    async def bring_online(
        self, partitions: Iterable[TopicPartition], election: Election = Election.OFFLINE
    ) -> Refusals:
        """Elect a leader of each partition; returns those without a candidate, which stay as they are."""
        asked, unreadable = list(partitions), self._context.unreadable
        remaining = [one for one in asked if one not in unreadable]
        refused: Refusals = {one: ErrorCode.LEADER_NOT_AVAILABLE for one in asked if one in unreadable}
        for _ in range(CONFLICT_ROUNDS):
            if not remaining:
                return refused
            if election is Election.OFFLINE:
                await self._load_settings_for(remaining)
            plan = partition_states.plan_online(self._context, remaining, election, self._allows_unclean)
            refused.update(plan.refused)
            created = await create_states(self._fenced, plan.created, self._topics_with_nodes(plan.created))
            changed = await change_states(self._fenced, plan.changed)
            self._note_online(created.states, is_new=True)
            self._note_online(changed.states, is_new=False)
            remaining = created.conflicts + changed.conflicts
            await self.read_again(remaining)
            refused.update((one, ErrorCode.LEADER_NOT_AVAILABLE) for one in remaining if one in unreadable)
            remaining = [one for one in remaining if one not in unreadable]
        refused.update(dict.fromkeys(remaining, ErrorCode.UNKNOWN_SERVER_ERROR))
        return refused

    async def _load_settings_for(self, partitions: Iterable[TopicPartition]) -> None:
        """Read the settings of the topics of which no replica in sync is live."""
        led, can_lead = self._context.leadership, self._context.can_lead
        topics = {
            one.topic
            for one in partitions
            if one in led and not any(can_lead(id_, one) for id_ in led[one].isr)
        }
        for topic in sorted(topics):
            await self._load_settings(topic)

    async def raise_leader_epoch(self, partition: TopicPartition) -> None:
        """Keep the leader in a new leader epoch, and send it to every replica: the assignment has changed."""
        for _ in range(CONFLICT_ROUNDS):
            known = self._context.leadership.get(partition)
            if known is None:
                return
            raised = known._replace(leader_epoch=known.leader_epoch + 1, controller_epoch=self._context.epoch)
            written = await change_states(self._fenced, {partition: raised})
            if written.states:
                self._context.leadership[partition] = written.states[partition]
                replicas = self._context.assignment(partition).replicas
                self._batch.add_leader_and_isr(replicas, partition)
                self._batch.add_update_metadata(self._context.brokers, [partition])
                return
            await self.read_again(written.conflicts)

    def _set_partitions(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        for partition in list(partitions):
            if partition_states.may_become(self._context, partition, target):
                self._context.set_partition_state(partition, target)
            else:
                state = self._context.partition_state(partition)
                logger.error(
                    "Invalid state transition of partition %s from %s to %s",
                    partition,
                    state.value,
                    target.value,
                )

    def _note_online(self, states: States, *, is_new: bool) -> None:
        for partition, state in states.items():
            if not is_new:
                self._elections.count(state.leader, self._context.leadership[partition].isr)
            self._context.leadership[partition] = state
            self._context.set_partition_state(partition, PartitionState.ONLINE)
            replicas = self._context.assignment(partition).replicas
            self._batch.add_leader_and_isr(replicas, partition, is_new=is_new)
        self._batch.add_update_metadata(self._context.brokers, states)

    def _topics_with_nodes(self, partitions: Iterable[TopicPartition]) -> set[str]:
        """Topics that had partitions before."""
        led, siblings = self._context.leadership, self._context.partitions_of
        return {
            topic for topic in {one.topic for one in partitions} if any(one in led for one in siblings(topic))
        }

    async def read_again(self, partitions: Iterable[TopicPartition]) -> None:
        """Read what others wrote; a partition that has a state is no longer new."""
        touched = list(partitions)
        found = await read_states(self._fenced.store, touched)
        await self.watch_damaged(one for one in touched if one not in found)
        for partition in touched:
            if partition not in found:
                self._context.leadership.pop(partition, None)
                continue
            self._context.unreadable.discard(partition)
            self._context.leadership[partition] = found[partition]
            if self._context.partition_state(partition) is PartitionState.NEW:
                self._context.set_partition_state(partition, PartitionState.OFFLINE)

    async def watch_damaged(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions whose state was not read: one that has a node is not elected until that is repaired."""
        asked = set(partitions)
        damaged = await existing_states(self._fenced.store, asked, self._on_damaged_state)
        self._context.unreadable.difference_update(asked)
        self._context.unreadable.update(damaged)

    async def read_repaired(self) -> None:
        """A damaged state node was written: bring what can be read again to its replicas."""
        damaged = set(self._context.unreadable)
        await self.read_again(damaged)
        for partition in sorted(damaged & self._context.leadership.keys()):
            if self._context.has_live_leader(partition):
                self._context.set_partition_state(partition, PartitionState.ONLINE)
                await self.raise_leader_epoch(partition)
            else:
                self._context.set_partition_state(partition, PartitionState.OFFLINE)

    # Replicas

    async def move_replicas(self, replicas: Iterable[PartitionReplica], target: ReplicaState) -> None:
        """Change the state of each replica; a forbidden transition is a bug, and logged."""
        plan = replica_states.plan_move(self._context, list(replicas), target)
        for partition, broker_id in plan.refused:
            state = self._context.replica_state(PartitionReplica(partition, broker_id))
            logger.error(
                "Invalid state transition of replica %d of %s from %s to %s",
                broker_id,
                partition,
                state.value,
                target.value,
            )
        if target is ReplicaState.OFFLINE:
            await self._shrink(plan.changed, plan.moved)
        for replica in plan.moved:
            self._add_requests(replica, target)
            self._context.set_replica_state(replica, target)

    def _add_requests(self, replica: PartitionReplica, target: ReplicaState) -> None:
        partition, broker_id = replica
        is_led = partition in self._context.leadership
        if target is ReplicaState.NEW and is_led:
            self._batch.add_leader_and_isr([broker_id], partition, is_new=True)
        elif target is ReplicaState.ONLINE and is_led:
            self._batch.add_leader_and_isr([broker_id], partition)
            # The other brokers consider this replica offline.
            self._batch.add_update_metadata(self._context.brokers, [partition])
        elif target is ReplicaState.OFFLINE:
            self._batch.stop_replica(broker_id, partition, delete=False)
            self._batch.add_update_metadata(self._context.brokers, [partition])
        elif target is ReplicaState.DELETION_STARTED:
            self._batch.stop_replica(broker_id, partition, delete=True)

    async def _shrink(self, changed: States, moved: list[PartitionReplica]) -> None:
        """Write the states without the offline replicas, and notify the remaining replicas."""
        gone = set(moved)
        for _ in range(CONFLICT_ROUNDS):
            written = await change_states(self._fenced, changed)
            for partition, state in written.states.items():
                self._context.leadership[partition] = state
                replicas = self._context.replicas_of([partition])
                self._batch.add_leader_and_isr(
                    [one.broker_id for one in replicas if one not in gone], partition
                )
            if not written.conflicts:
                return
            await self.read_again(written.conflicts)
            again = [replica for replica in moved if replica.partition in set(written.conflicts)]
            changed = replica_states.plan_move(self._context, again, ReplicaState.OFFLINE).changed
