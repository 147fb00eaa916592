"""How the controller handles topics and partitions that appear in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from uuid import UUID

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.event_handlers.topic_deletion_manager import TopicDeletionManager
from odradek.cluster.controller.events import PartitionsChanged, TopicsChanged
from odradek.cluster.controller.state.context import PartitionReplica, ReplicaAssignment, ReplicaState
from odradek.common.ids import TopicPartition, topic_name_problem
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode, OperationRefused
from odradek.coordination.payloads import TopicAssignment
from odradek.coordination.store import Node, SetData

logger = logging.getLogger(__name__)

READS_AT_ONCE = 200


class TopicChanges:
    """Owned by the controller's event loop. `new_topic_id` generates random topic ids."""

    def __init__(
        self, session: ControllerSession, deleting: TopicDeletionManager, new_topic_id: Callable[[], UUID]
    ) -> None:
        self._session = session
        self._context = session.context
        self._deleting = deleting
        self._new_topic_id = new_topic_id
        # Topics whose node was damaged, or changed while it was read: read again when it is written.
        self._unread: set[str] = set()

    async def read_names(self) -> set[str]:
        """Every topic in the store; each later change becomes an event."""
        return set(await self._session.store.children(paths.TOPICS, self._session.watcher(TopicsChanged())))

    async def topics_changed(self) -> None:
        """Load new topics; remove those whose nodes were removed by others."""
        names = await self.read_names()
        damaged = set(self._context.damaged_topics)
        self._context.damaged_topics &= names
        self._unread &= names
        for topic in sorted(self._context.assignments.keys() - names):
            self._remove(topic)
        added = await self.load_topics(names - self._context.assignments.keys())
        await self.start_partitions(added)
        if damaged and not self._context.damaged_topics:
            # They were kept from the full state by the damaged topics.
            self._session.batch.add_full_state(self._context.brokers)
        if added:
            await self._deleting.deletions_changed()

    async def partitions_changed(self, topic: str) -> None:
        """A topic's node was written: start its new partitions, or all of a topic that was damaged."""
        if topic in self._unread and topic not in self._context.assignments:
            await self.topics_changed()
            return
        if topic not in self._context.assignments or self._context.is_queued_for_deletion(topic):
            return
        written = await self._read(topic)
        if written is None:
            return
        if _id_bytes(written) != self._context.topic_id(topic):
            # Removed and created again by others, so quickly that only this watch fired.
            self._remove(topic)
            await self.topics_changed()
            return
        # The replicas of known partitions are changed by reassignments only.
        known = self._context.assignments[topic]
        new = {index: replicas for index, replicas in written.partitions.items() if index not in known}
        added = self._assign(topic, written._replace(partitions=new))
        await self.start_partitions(added)

    async def load_topics(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Read topics into the context; returns their partitions. Damaged topics are left out.

        A damaged topic that has partitions is one of ours: its logs are kept until it can be read.
        """
        names = sorted(topics)
        partitions: list[TopicPartition] = []
        for start in range(0, len(names), READS_AT_ONCE):
            chunk = names[start : start + READS_AT_ONCE]
            found = await asyncio.gather(*(self._read(name) for name in chunk))
            for topic, written in zip(chunk, found, strict=True):
                if written is not None:
                    partitions += self._assign(topic, written)
        return partitions

    async def start_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect first leaders of new partitions, and bring replicas on live brokers online."""
        added = list(partitions)
        transitions = self._session.transitions
        replicas = list(self._context.replicas_of(added))
        transitions.add_new_partitions(added)
        await transitions.move_replicas(replicas, ReplicaState.NEW)
        refused = await transitions.bring_online(added)
        for partition, error in refused.items():
            logger.warning("%s has no leader yet: %s", partition, error.name)
        await transitions.move_replicas(self._online(replicas, True), ReplicaState.ONLINE)
        await transitions.move_replicas(self._online(replicas, False), ReplicaState.OFFLINE)

    def _online(self, replicas: Iterable[PartitionReplica], wanted: bool) -> list[PartitionReplica]:
        online = self._context.is_replica_online
        return [one for one in replicas if online(one.broker_id, one.partition) is wanted]

    def _remove(self, topic: str) -> None:
        logger.warning("topic %s was removed from the store by another process", topic)
        self._context.remove_topic(topic)
        self._session.batch.add_full_state(self._context.brokers)

    def _assign(self, topic: str, written: TopicAssignment) -> list[TopicPartition]:
        self._context.topic_ids[topic] = _id_bytes(written)
        partitions = []
        for index, one in sorted(written.partitions.items()):
            partition = TopicPartition(topic, index)
            partitions.append(partition)
            self._context.assign(partition, ReplicaAssignment(one.replicas, one.adding, one.removing))
        self._context.assignments.setdefault(topic, {})
        return partitions

    async def _read(self, topic: str) -> TopicAssignment | None:
        """A topic's node, which gets an id if it has none; None, with a log message, if it is damaged."""
        problem = topic_name_problem(topic)
        if problem is not None:
            logger.error("a topic in the store is ignored: %s", problem)
            return None
        watcher = self._session.watcher(PartitionsChanged(topic))
        self._unread.add(topic)
        try:
            node = await self._session.store.get(paths.topic(topic), watcher)
            written = TopicAssignment.decode(node.payload)
            if written.topic_id is None:
                written = await self._give_id(topic, node, written)
        except (NoNode, OperationRefused):
            return None  # changed concurrently: its watch has fired already
        except DamagedPayload as damage:
            logger.error("topic %s in the store is ignored: %s", topic, damage)
            if topic not in self._context.assignments and await self._has_partitions(topic):
                self._context.damaged_topics.add(topic)
            return None
        self._unread.discard(topic)
        self._context.damaged_topics.discard(topic)
        return written

    async def _has_partitions(self, topic: str) -> bool:
        return await self._session.store.exists(paths.topic_partitions(topic)) is not None

    async def _give_id(self, topic: str, node: Node, written: TopicAssignment) -> TopicAssignment:
        """Give an id to a topic that a tool created without one (KIP-516)."""
        identified = written._replace(topic_id=self._new_topic_id())
        await self._session.fenced.write(
            [SetData(paths.topic(topic), identified.encode(), node.stat.version)]
        )
        return identified


def _id_bytes(written: TopicAssignment) -> bytes:
    assert written.topic_id is not None
    return written.topic_id.bytes
