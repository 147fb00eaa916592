"""The settings of topics as this broker applies them: read from the store, kept, and put into the logs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cluster.entity_configs import read_configs
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode
from odradek.coordination.store import Store
from odradek.log.config import LogConfig

logger = logging.getLogger(__name__)

READS_AT_ONCE = 200


class TopicSettings:
    """What each topic overrides. Lives on the broker's loop; `config` returns the current broker settings."""

    def __init__(self, config: Callable[[], BrokerConfig]) -> None:
        self._config = config
        self._overrides: dict[str, Mapping[str, str]] = {}

    async def load_all(self, store: Store) -> None:
        """Read every topic's settings, before the logs are opened and when a session begins."""
        known = set(self._overrides)
        try:
            topics = await store.children(paths.topic_entity("x").path.rpartition("/")[0])
        except NoNode:
            topics = []
        for topic in known.difference(topics):
            self.forget(topic)
        for start in range(0, len(topics), READS_AT_ONCE):
            chunk = topics[start : start + READS_AT_ONCE]
            await asyncio.gather(*(self.load(store, topic) for topic in chunk))

    async def load(self, store: Store, topic: str) -> Mapping[str, str]:
        """Read one topic's settings again; those known before stay if the node is damaged."""
        try:
            self._overrides[topic] = await read_configs(store, paths.topic_entity(topic))
        except DamagedPayload as damage:
            self._overrides.setdefault(topic, {})
            logger.error("the settings of topic %s cannot be read: %s", topic, damage)
        return self._overrides[topic]

    def overrides(self, topic: str) -> Mapping[str, str]:
        """What the topic sets itself."""
        return self._overrides.get(topic, {})

    def knows(self, topic: str) -> bool:
        """Whether the topic's settings were read."""
        return topic in self._overrides

    def forget(self, topic: str) -> None:
        """The topic is gone."""
        self._overrides.pop(topic, None)

    def log_config(self, topic: str) -> LogConfig:
        """The settings of the topic's logs."""
        return self._config().topic(self.overrides(topic))
