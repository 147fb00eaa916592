"""A broker's settings that change while it runs: kept in the store, for it alone or for the whole cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from odradek.broker.settings.alter import Change, alter_broker
from odradek.broker.settings.broker_config import BrokerConfig, broker_config
from odradek.broker.settings.sources import Sources
from odradek.cluster.entity_configs import Configs, change_configs, read_configs
from odradek.common.errors import ConfigError
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.paths import ConfigEntity, broker_entity
from odradek.coordination.store import Store

logger = logging.getLogger(__name__)

MakeChanges = Callable[[Configs], Sequence[Change]]


class BrokerSettings:
    """Reads, changes and applies the dynamic values. Lives on the broker's loop.

    `store` returns the current session, `config` the current configuration, and `apply` applies a new one.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        broker_id: Callable[[], int],
        config: Callable[[], BrokerConfig],
        apply: Callable[[BrokerConfig], None],
    ) -> None:
        self._store = store
        self._broker_id = broker_id
        self._config = config
        self._apply = apply

    async def sources(self) -> Sources:
        """Every value of this broker and who set it, as the store has it now."""
        return Sources(
            self._config().sources.static,
            dynamic_default=await read_configs(self._store(), broker_entity(None)),
            dynamic_broker=await read_configs(self._store(), broker_entity(self._broker_id())),
        )

    async def load(self) -> None:
        """Apply the values in the store; invalid or damaged ones, written by other tools, are ignored."""
        try:
            sources = await self.sources()
            if sources == self._config().sources:
                return
            config = broker_config(sources)
        except (ConfigError, DamagedPayload) as problem:
            logger.error("the dynamic settings in the store are not applied: %s", problem)
            return
        self._apply(config)

    async def change(self, changes_of: MakeChanges, *, is_default: bool, validate_only: bool) -> None:
        """Do what `changes_of` makes of the stored values, to this broker or by `is_default` to all."""
        sources = await self.sources()

        def changed(stored: Configs) -> Configs:
            own = {"dynamic_default": stored} if is_default else {"dynamic_broker": stored}
            return alter_broker(replace(sources, **own), changes_of(stored), is_default=is_default)

        if validate_only:
            changed(dict(sources.dynamic_default if is_default else sources.dynamic_broker))
            return
        await change_configs(self._store(), self._entity(is_default=is_default), changed)
        await self.load()

    def _entity(self, *, is_default: bool) -> ConfigEntity:
        return broker_entity(None if is_default else self._broker_id())
