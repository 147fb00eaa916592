"""Carries out the deletion of topics as topic_deletion.py decides it."""

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

    def __init__(self, office: ControllerSession, *, is_enabled: bool) -> None:
        self._office = office
        self._context = office.context
        self._deletions = office.context.deletions
        self._is_enabled = is_enabled

    async def deletions_changed(self) -> None:
        """Queue the topics that somebody wants deleted; wishes that cannot be fulfilled are taken away."""
        watcher = self._office.watcher(DeletionsChanged())
        wished = await self._office.store.children(paths.DELETE_TOPICS, watcher)
        known = [name for name in wished if self._is_enabled and name in self._context.assignments]
        await self._drop_wishes(name for name in wished if name not in known)
        for name in known:
            if name not in self._deletions.queued:
                logger.info("topic %s is to be deleted", name)
                self._deletions.queued.add(name)
                if is_halted(self._context, name):
                    self._deletions.ineligible.add(name)
        await self.resume()

    async def resume(self) -> None:
        """Do what can be done now for the topics queued."""
        steps = next_steps(self._context)
        for topic in steps.complete:
            await self._complete(topic)
        await self._office.transitions.move_replicas(steps.retry, ReplicaState.OFFLINE)
        await self._begin(steps.begin)

    async def lift(self, topics: Collection[str]) -> None:
        """A broker that holds replicas of these topics is back: try again."""
        self._deletions.ineligible -= {topic for topic in topics if not is_halted(self._context, topic)}
        await self.resume()

    async def fail(self, replicas: Iterable[PartitionReplica]) -> None:
        """Replicas of topics in deletion went out of reach: halt until they are back."""
        failed = [
            one
            for one in replicas
            if self._state(one) not in (ReplicaState.DELETION_SUCCESSFUL, ReplicaState.NON_EXISTENT)
        ]
        served = (ReplicaState.NEW, ReplicaState.ONLINE)
        await self._office.transitions.move_replicas(
            [one for one in failed if self._state(one) in served], ReplicaState.OFFLINE
        )
        await self._office.transitions.move_replicas(
            [one for one in failed if self._state(one) is not ReplicaState.DELETION_INELIGIBLE],
            ReplicaState.DELETION_INELIGIBLE,
        )
        self._deletions.ineligible.update(one.partition.topic for one in failed)

    async def replicas_answered(
        self, deleted: Iterable[PartitionReplica], failed: Iterable[PartitionReplica]
    ) -> None:
        """What a broker says of the replicas that it was to delete."""
        started = [one for one in deleted if self._state(one) is ReplicaState.DELETION_STARTED]
        await self._office.transitions.move_replicas(started, ReplicaState.DELETION_SUCCESSFUL)
        await self.fail(one for one in failed if self._state(one) is ReplicaState.DELETION_STARTED)
        await self.resume()

    async def _drop_wishes(self, names: Iterable[str]) -> None:
        """Take wishes away, except for a topic that is there and not yet known: its event is under way."""
        for name in names:
            is_coming = self._is_enabled and await self._office.store.exists(paths.topic(name)) is not None
            if not is_coming:
                try:
                    await self._delete_nodes([paths.delete_topic(name)])
                except OperationRefused as refusal:
                    logger.info("somebody else took the wish away: %s", refusal)

    async def _begin(self, topics: Iterable[str]) -> None:
        """Tell every broker that the topics are leaving, then ask the replicas to delete."""
        begun = list(topics)
        for topic in begun:
            if topic not in self._deletions.started:
                self._deletions.started.add(topic)
                partitions = list(self._context.partitions_of(topic))
                self._office.transitions.lose_partitions(partitions)
                self._office.transitions.end_partitions(partitions)
                self._office.batch.tell_metadata(self._context.brokers, partitions)
        split = split_replicas(self._context, begun)
        await self.fail(split.unreachable)
        await self._office.transitions.move_replicas(
            [one for one in split.reachable if self._state(one) is not ReplicaState.OFFLINE],
            ReplicaState.OFFLINE,
        )
        await self._office.transitions.move_replicas(split.reachable, ReplicaState.DELETION_STARTED)

    async def _complete(self, topic: str) -> None:
        """Every replica is gone: remove the nodes, the topic's own with the wish as the last."""
        for _ in range(ROUNDS):
            inner = await self._inner_nodes(topic)
            optional = [paths.topic_entity(topic).path, paths.topic(topic), paths.delete_topic(topic)]
            outer = [path for path in optional if await self._office.store.exists(path) is not None]
            try:
                await self._delete_nodes([*inner, *outer])
                break
            except OperationRefused as refusal:
                logger.warning("deletion of topic %s, once more: %s", topic, refusal)
        else:
            return  # the wish is still there; the next event tries again
        await self._office.transitions.move_replicas(
            list(self._context.replicas_of_topic(topic)), ReplicaState.NON_EXISTENT
        )
        self._context.remove_topic(topic)
        logger.info("topic %s is deleted", topic)

    async def _inner_nodes(self, topic: str) -> list[str]:
        """The nodes below a topic, children before parents."""
        parent = paths.topic_partitions(topic)
        found: list[str] = []
        try:
            for name in await self._office.store.children(parent):
                path = f"{parent}/{name}"
                found += [f"{path}/{child}" for child in await self._office.store.children(path)]
                found.append(path)
        except NoNode:
            return found
        return [*found, parent]

    async def _delete_nodes(self, nodes: list[str]) -> None:
        for start in range(0, len(nodes), DELETES_PER_WRITE):
            await self._office.fenced.write(
                [Delete(path) for path in nodes[start : start + DELETES_PER_WRITE]]
            )

    def _state(self, replica: PartitionReplica) -> ReplicaState:
        return self._context.replica_state(replica)
