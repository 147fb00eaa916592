"""Topic administration: creation, more partitions, deletion, settings.

All of it is written into nodes that the controller watches. This does not need to be the controller:
any broker may write a topic's node, as Kafka's tools do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from odradek.cluster.entity_configs import Configs, change_configs, read_configs
from odradek.cluster.random_ids import random_uuid
from odradek.cluster.topics.new_topics import (
    NewTopic,
    PlacementSeed,
    assign_more_partitions,
    assign_new_topic,
    check_new_name,
)
from odradek.cluster.topics.placement import Assignment, BrokerLocation
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import topic_name_problem
from odradek.coordination import paths
from odradek.coordination.errors import BadVersion, NodeExists, NoNode
from odradek.coordination.payloads import Replicas, TopicAssignment, encode_config
from odradek.coordination.store import Create, Node, Operation, SetData, Store, Watcher

CheckConfigs = Callable[[str, Mapping[str, str]], None]


def accept_any_configs(topic: str, configs: Mapping[str, str]) -> None:
    """For callers that have checked them already."""


class TopicDefaults(NamedTuple):
    """The broker's `num.partitions`, `default.replication.factor` and `delete.topic.enable`."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    is_delete_topic_enabled: bool = True


class CreatedTopic(NamedTuple):
    """A topic as it is now, or, when it was only to be validated, as it would be; then without id."""

    name: str
    topic_id: UUID | None
    assignment: Assignment


class TopicAdmin:
    """Owned by the broker's event loop. `sites` are the live brokers; `check_configs` raises to refuse.

    `store` returns the current session: this object outlives sessions.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        sites: Callable[[], Iterable[BrokerLocation]],
        *,
        defaults: TopicDefaults | None = None,
        check_configs: CheckConfigs = accept_any_configs,
        rng: random.Random | None = None,
        new_topic_id: Callable[[], UUID] = random_uuid,
    ) -> None:
        self._store = store
        self._sites = sites
        self._defaults = defaults or TopicDefaults()
        self._check_configs = check_configs
        self._rng = rng or random.Random(random.getrandbits(64))
        self._new_topic_id = new_topic_id

    async def create_topic(self, topic: NewTopic, *, validate_only: bool = False) -> CreatedTopic:
        """Create a topic with its settings in one transaction; KafkaError if refused."""
        await self._check_name(topic.name)
        self._check_configs(topic.name, topic.configs)
        assignment = self._place(topic)
        if validate_only:
            return CreatedTopic(topic.name, None, assignment)
        topic_id = self._new_topic_id()
        written = TopicAssignment({index: Replicas(ids) for index, ids in assignment.items()}, topic_id)
        while True:
            operations = [await self._config_write(topic), Create(paths.topic(topic.name), written.encode())]
            try:
                await self._store().multi(operations)
            except (NodeExists, NoNode) as refusal:
                if refusal.operation_index == 0:
                    continue  # the settings of an earlier topic of that name were created or removed
                await self._check_name(topic.name)
                continue
            return CreatedTopic(topic.name, topic_id, assignment)

    async def _check_name(self, name: str) -> None:
        existing = set(await self._store().children(paths.TOPICS))
        if name in existing and await self._store().exists(paths.delete_topic(name)) is not None:
            raise KafkaError(
                f"Topic '{name}' is marked for deletion.", error_code=ErrorCode.TOPIC_ALREADY_EXISTS
            )
        check_new_name(name, existing)

    def _place(self, topic: NewTopic) -> Assignment:
        sites = list(self._sites())
        bound = max(len(sites), 1)
        return assign_new_topic(
            topic,
            sites,
            default_partitions=self._defaults.num_partitions,
            default_factor=self._defaults.default_replication_factor,
            seed=PlacementSeed(self._rng.randrange(bound), self._rng.randrange(bound)),
        )

    async def _config_write(self, topic: NewTopic) -> Operation:
        path = paths.topic_entity(topic.name).path
        payload = encode_config(topic.configs)
        if await self._store().exists(path) is None:
            return Create(path, payload)
        return SetData(path, payload)

    async def topic_id(self, name: str, watcher: Watcher | None = None) -> UUID | None:
        """The id of a topic that exists; None if a tool created it without one.

        The watcher is called when the topic is changed or deleted.
        """
        return TopicAssignment.decode((await self._read(name, watcher)).payload).topic_id

    async def delete_topic(self, name: str) -> None:
        """Request a topic's deletion; the controller does it. Idempotent."""
        if not self._defaults.is_delete_topic_enabled:
            raise KafkaError(
                "Topic deletion is disabled (delete.topic.enable=false).",
                error_code=ErrorCode.TOPIC_DELETION_DISABLED,
            )
        await self._read(name)
        try:
            await self._store().create(paths.delete_topic(name))
        except NodeExists:
            return

    async def create_partitions(
        self,
        name: str,
        total_count: int,
        manual: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> Assignment:
        """Add partitions up to `total_count`; the replicas of those added."""
        while True:
            node = await self._read(name)
            written = TopicAssignment.decode(node.payload)
            if any(one.adding or one.removing for one in written.partitions.values()):
                raise KafkaError(
                    f"A partition of topic {name} is being reassigned.",
                    error_code=ErrorCode.REASSIGNMENT_IN_PROGRESS,
                )
            existing = {index: one.replicas for index, one in written.partitions.items()}
            added = assign_more_partitions(name, existing, total_count, manual, self._sites())
            if validate_only:
                return added
            partitions = {**written.partitions, **{index: Replicas(ids) for index, ids in added.items()}}
            grown = written._replace(partitions=partitions).encode()
            try:
                await self._store().set(paths.topic(name), grown, node.stat.version)
            except BadVersion:
                continue
            return added

    async def read_configs(self, name: str) -> Configs:
        """What was set for a topic."""
        return await read_configs(self._store(), paths.topic_entity(name))

    async def change_configs(
        self, name: str, change: Callable[[Configs], Mapping[str, str]], *, validate_only: bool = False
    ) -> Configs:
        """Replace a topic's settings by what `change` makes of them; every broker is notified."""
        await self._read(name)

        def checked(configs: Configs) -> Mapping[str, str]:
            changed = change(configs)
            self._check_configs(name, changed)
            return changed

        if validate_only:
            return dict(checked(await self.read_configs(name)))
        return await change_configs(self._store(), paths.topic_entity(name), checked)

    async def _read(self, name: str, watcher: Watcher | None = None) -> Node:
        # A name with a slash would lead to nodes that are not topics.
        if topic_name_problem(name) is None:
            try:
                return await self._store().get(paths.topic(name), watcher)
            except NoNode:
                pass
        raise KafkaError(
            f"The topic '{name}' does not exist.", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
