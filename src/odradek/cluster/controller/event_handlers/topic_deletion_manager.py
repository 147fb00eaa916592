"""Deletes topics, in the steps that topic_deletion.py decides."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from odradek.cluster.controller.controller_session import ControllerSession
from odradek.cluster.controller.events import DeletionsChanged
from odradek.cluster.controller.state.context import PartitionReplica, ReplicaState
from odradek.cluster.controller.state.topic_deletion import is_halted, next_steps, split_replicas
from odradek.coordination import paths
from odradek.coordination.errors import NoNode, OperationRefused
from odradek.coordination.store import Delete

logger = logging.getLogger(__name__)

DELETES_PER_WRITE = 1000
ROUNDS = 5


class TopicDeletionManager:
    """Owned by the controller's event loop, for one term."""

    def __init__(self, session: ControllerSession, *, is_enabled: bool) -> None:
        self._session = session
        self._context = session.context
        self._deletions = session.context.deletions
        self._is_enabled = is_enabled

    async def deletions_changed(self) -> None:
        """Queue the topics to be deleted; requests that cannot be fulfilled are removed."""
        watcher = self._session.watcher(DeletionsChanged())
        requested = await self._session.store.children(paths.DELETE_TOPICS, watcher)
        known = [name for name in requested if self._is_enabled and name in self._context.assignments]
        await self._remove_requests(name for name in requested if name not in known)
        for name in known:
            if name not in self._deletions.queued:
                logger.info("deletion of topic %s requested", name)
                self._deletions.queued.add(name)
                if is_halted(self._context, name):
                    self._deletions.ineligible.add(name)
        await self.resume()

    async def resume(self) -> None:
        """Do the next possible steps for the queued topics."""
        steps = next_steps(self._context)
        for topic in steps.complete:
            await self._complete(topic)
        await self._session.transitions.move_replicas(steps.retry, ReplicaState.OFFLINE)
        await self._begin(steps.begin)

    async def lift(self, topics: Collection[str]) -> None:
        """A broker with replicas of these topics has started: retry."""
        self._deletions.ineligible -= {topic for topic in topics if not is_halted(self._context, topic)}
        await self.resume()

    async def fail(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas of topics in deletion went offline: halt until they are online again."""
        failed = [
            one
            for one in replicas
            if self._state(one) not in (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT)
        ]
        served = (ReplicaState.NEW, ReplicaState.ONLINE)
        await self._session.transitions.move_replicas(
            [one for one in failed if self._state(one) in served], ReplicaState.OFFLINE
        )
        await self._session.transitions.move_replicas(
            [one for one in failed if self._state(one) is not ReplicaState.DELETION_INELIGIBLE],
            ReplicaState.DELETION_INELIGIBLE,
        )
        self._deletions.ineligible.update(one.partition.topic for one in failed)

    async def replicas_answered(
        self, deleted: Iterable[PartitionReplica], failed: Iterable[PartitionReplica]
    ) -> None:
        """A broker's response about replicas that it was requested to delete."""
        started = [one for one in deleted if self._state(one) is ReplicaState.DELETION_STARTED]
        await self._session.transitions.move_replicas(started, ReplicaState.DELETION_SUCCESSFUL)
        await self.fail(one for one in failed if self._state(one) is ReplicaState.DELETION_STARTED)
        await self.resume()

    async def _remove_requests(self, names: Iterable[str]) -> None:
        """Remove requests, except for a topic that exists and is not yet known: its event is pending."""
        for name in names:
            is_coming = self._is_enabled and await self._session.store.exists(paths.topic(name)) is not None
            if not is_coming:
                try:
                    await self._delete_nodes([paths.delete_topic(name)])
                except OperationRefused as refusal:
                    logger.info("the request was removed by another process: %s", refusal)

    async def _begin(self, topics: Iterable[str]) -> None:
        """Notify every broker, then request the replicas to delete."""
        begun = list(topics)
        for topic in begun:
            if topic not in self._deletions.started:
                self._deletions.started.add(topic)
                partitions = list(self._context.partitions_of(topic))
                self._session.transitions.take_partitions_offline(partitions)
                self._session.transitions.remove_partitions(partitions)
                self._session.batch.add_update_metadata(self._context.brokers, partitions)
        split = split_replicas(self._context, begun)
        await self.fail(split.unreachable)
        await self._session.transitions.move_replicas(
            [one for one in split.reachable if self._state(one) is not ReplicaState.OFFLINE],
            ReplicaState.OFFLINE,
        )
        await self._session.transitions.move_replicas(split.reachable, ReplicaState.DELETION_STARTED)

    async def _complete(self, topic: str) -> None:
        """All replicas are deleted: remove the nodes, the topic's own with the request as the last."""
        for _ in range(ROUNDS):
            inner = await self._inner_nodes(topic)
            optional = [paths.topic_entity(topic).path, paths.topic(topic), paths.delete_topic(topic)]
            outer = [path for path in optional if await self._session.store.exists(path) is not None]
            try:
                await self._delete_nodes([*inner, *outer])
                break
            except OperationRefused as refusal:
                logger.warning("retrying the deletion of topic %s: %s", topic, refusal)
        else:
            return  # the request is still there; the next event retries
        await self._session.transitions.move_replicas(
            list(self._context.replicas_of_topic(topic)), ReplicaState.NON_EXISTENT
        )
        self._context.remove_topic(topic)
        logger.info("topic %s is deleted", topic)

    async def _inner_nodes(self, topic: str) -> list[str]:
        """The nodes below a topic, children before parents."""
        parent = paths.topic_partitions(topic)
        found: list[str] = []
        try:
            for name in await self._session.store.children(parent):
                path = f"{parent}/{name}"
                found += [f"{path}/{child}" for child in await self._session.store.children(path)]
                found.append(path)
        except NoNode:
            return found
        return [*found, parent]

    async def _delete_nodes(self, nodes: list[str]) -> None:
        for start in range(0, len(nodes), DELETES_PER_WRITE):
            await self._session.fenced.write(
                [Delete(path) for path in nodes[start : start + DELETES_PER_WRITE]]
            )

    def _state(self, replica: PartitionReplica) -> ReplicaState:
        return self._context.replica_state(replica)
