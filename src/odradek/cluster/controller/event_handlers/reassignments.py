"""How the controller moves partitions to other replicas: by request, or by /admin/reassign_partitions."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.event_handlers.topic_deletion_manager import TopicDeletionManager
from odradek.cluster.controller.events import ReassignmentResult, ReassignmentsChanged
from odradek.cluster.controller.state.context import PartitionReplica, ReplicaAssignment, ReplicaState
from odradek.cluster.controller.state.election import Election
from odradek.cluster.controller.state.reassignment import is_complete, plan_reassignment
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode, OperationRefused
from odradek.coordination.payloads import (
    Replicas,
    TopicAssignment,
    decode_reassignment,
    encode_reassignment,
)
from odradek.coordination.store import Delete, Node, SetData

logger = logging.getLogger(__name__)

WRITE_ROUNDS = 5
REMOVAL = (
    ReplicaState.OFFLINE,
    ReplicaState.DELETION_STARTED,
    ReplicaState.DELETION_SUCCESSFUL,
    ReplicaState.NON_EXISTENT,
)

Targets = Mapping[TopicPartition, tuple[int, ...] | None]


class Reassignments:
    """Owned by the controller's event loop, for one term."""

    def __init__(self, session: ControllerSession, deleting: TopicDeletionManager) -> None:
        self._session = session
        self._context = session.context
        self._deleting = deleting

    async def request(
        self, targets: Targets, *, allows_other_factor: bool = True
    ) -> dict[TopicPartition, ReassignmentResult]:
        """Begin, replace or cancel (None) the reassignment of each partition."""
        results = {}
        for partition, target in targets.items():
            plan = plan_reassignment(
                self._context, partition, target, allows_other_factor=allows_other_factor
            )
            results[partition] = ReassignmentResult(plan.error, plan.message)
            if plan.assignment is not None:
                try:
                    await self._begin(partition, plan.assignment)
                except DamagedPayload as damage:
                    results[partition] = ReassignmentResult(ErrorCode.UNKNOWN_SERVER_ERROR, str(damage))
        return results

    def in_progress(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions that are being reassigned, of these or of all."""
        wanted = self._context.partitions() if partitions is None else partitions
        assignments = {one: self._context.assignment(one) for one in wanted}
        return {one: assignment for one, assignment in assignments.items() if assignment.is_being_reassigned}

    async def node_changed(self) -> None:
        """A tool has written /admin/reassign_partitions: begin what it has, and remove what cannot be."""
        watcher = self._session.watcher(ReassignmentsChanged())
        if await self._session.store.exists(paths.REASSIGN_PARTITIONS, watcher) is None:
            return
        wanted = await self._read_node()
        if wanted is None:
            return
        begun = {one: target for one, target in wanted.items() if not self._is_on_its_way(one, target)}
        results = await self.request(begun)
        for partition, result in results.items():
            if result.error is not ErrorCode.NONE:
                logger.error("%s is not reassigned: %s", partition, result.message)
        over = [one for one in wanted if not self._context.assignment(one).is_being_reassigned]
        await self._remove_from_node(over)

    async def resume(self) -> None:
        """A new controller, or brokers that have started: continue what is in progress."""
        for partition in self.in_progress():
            if not self._context.is_queued_for_deletion(partition.topic):
                await self._proceed(partition)

    async def isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """Complete the reassignments whose last replica is in sync now."""
        for partition in self.in_progress(partitions):
            if is_complete(self._context, partition):
                await self._complete(partition)

    def _is_on_its_way(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        assignment = self._context.assignment(partition)
        return assignment.is_being_reassigned and set(assignment.target) == set(target)

    async def _begin(self, partition: TopicPartition, planned: ReplicaAssignment) -> None:
        current = self._context.assignment(partition)
        logger.info("%s: replicas %s are reassigned to %s", partition, current.replicas, planned.target)
        if planned != current:
            await self._write(partition, planned)
            self._context.assign(partition, planned)
            await self._remove(partition, [id_ for id_ in current.replicas if id_ not in planned.replicas])
        await self._proceed(partition)

    async def _proceed(self, partition: TopicPartition) -> None:
        """Complete it, or have the new replicas follow the leader."""
        if is_complete(self._context, partition):
            await self._complete(partition)
            return
        await self._session.transitions.raise_leader_epoch(partition)
        adding = [PartitionReplica(partition, id_) for id_ in self._context.assignment(partition).adding]
        new = [one for one in adding if self._context.replica_state(one) is ReplicaState.NON_EXISTENT]
        await self._session.transitions.move_replicas(new, ReplicaState.NEW)

    async def _complete(self, partition: TopicPartition) -> None:
        """Every target replica is in sync: elect one of them if need be, and remove the others.

        The node with the assignment is written last: a new controller does everything again.
        """
        transitions = self._session.transitions
        assignment = self._context.assignment(partition)
        try:
            await self._read_topic(partition.topic)
        except DamagedPayload as damage:
            logger.error("%s: the reassignment waits until its topic is repaired: %s", partition, damage)
            return
        if not await self._ensure_leader_stays(partition, assignment.target):
            return  # it is tried again when a broker starts
        added = [PartitionReplica(partition, id_) for id_ in assignment.adding]
        await transitions.move_replicas(added, ReplicaState.ONLINE)
        self._context.assign(partition, ReplicaAssignment(assignment.target))
        await transitions.raise_leader_epoch(partition)
        await self._remove(partition, assignment.removing)
        await self._write(partition, ReplicaAssignment(assignment.target))
        await self._remove_from_node([partition])
        self._session.batch.add_update_metadata(self._context.brokers, [partition])
        logger.info("%s: the replicas are %s now", partition, assignment.target)
        await self._deleting.lift({partition.topic})

    async def _ensure_leader_stays(self, partition: TopicPartition, target: tuple[int, ...]) -> bool:
        """Whether a live replica of the target leads, after an election if need be."""
        state = self._context.leadership.get(partition)
        if state is None:
            return False  # its node was damaged meanwhile
        if state.leader in target and self._context.has_live_leader(partition):
            return True
        refused = await self._session.transitions.bring_online([partition], Election.REASSIGNED)
        if refused:
            logger.warning("%s: none of the replicas %s can lead at present", partition, target)
        return not refused

    async def _remove(self, partition: TopicPartition, broker_ids: Iterable[int]) -> None:
        """Have replicas deleted that are not assigned any more; one on a dead broker is a stray later.

        None is deleted if one of them leads and cannot be replaced.
        """
        leaving = [PartitionReplica(partition, id_) for id_ in broker_ids]
        if not leaving:
            return
        state = self._context.leadership.get(partition)
        leads = state is not None and state.leader in [one.broker_id for one in leaving]
        if leads and await self._session.transitions.bring_online([partition], Election.REASSIGNED):
            logger.error(
                "%s: the replicas on brokers %s are kept, because no other one can lead",
                partition,
                [one.broker_id for one in leaving],
            )
            return
        for target in REMOVAL:
            await self._session.transitions.move_replicas(leaving, target)
        for broker_id in (one.broker_id for one in leaving):
            self._context.offline_directories.get(broker_id, set()).discard(partition)

    async def _write(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Write the assignment into the topic's node, whatever else others change there."""
        path = paths.topic(partition.topic)
        for _ in range(WRITE_ROUNDS):
            node, written = await self._read_topic(partition.topic)
            partitions = {**written.partitions, partition.partition: Replicas(*assignment)}
            payload = written._replace(partitions=partitions).encode()
            try:
                await self._session.fenced.write([SetData(path, payload, node.stat.version)])
                return
            except OperationRefused as refusal:
                last = refusal
        raise last

    async def _read_topic(self, topic: str) -> tuple[Node, TopicAssignment]:
        node = await self._session.store.get(paths.topic(topic))
        return node, TopicAssignment.decode(node.payload)

    async def _read_node(self) -> dict[TopicPartition, tuple[int, ...]] | None:
        """What the node asks for; None, and the node is removed, if it cannot be read."""
        try:
            return decode_reassignment((await self._session.store.get(paths.REASSIGN_PARTITIONS)).payload)
        except NoNode:
            return None
        except DamagedPayload as damage:
            logger.error("%s is removed: %s", paths.REASSIGN_PARTITIONS, damage)
            await self._session.fenced.write([Delete(paths.REASSIGN_PARTITIONS)])
            return None

    async def _remove_from_node(self, partitions: Iterable[TopicPartition]) -> None:
        """Take partitions out of the node that a tool has written; it is deleted with the last one."""
        over = set(partitions)
        try:
            node = await self._session.store.get(paths.REASSIGN_PARTITIONS)
            wanted = decode_reassignment(node.payload)
            remaining = {one: replicas for one, replicas in wanted.items() if one not in over}
            if remaining == wanted and remaining:
                return
            change: SetData | Delete = Delete(paths.REASSIGN_PARTITIONS, node.stat.version)
            if remaining:
                change = SetData(paths.REASSIGN_PARTITIONS, encode_reassignment(remaining), node.stat.version)
            await self._session.fenced.write([change])
        except (NoNode, DamagedPayload):
            return
        except OperationRefused as refusal:
            logger.info("%s was changed by a tool: %s", paths.REASSIGN_PARTITIONS, refusal)
