"""The settings of single groups: read from the store, changed there, and passed to the coordinator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from odradek.broker.settings.alter import Change, alter_group
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.declarations.groups import GroupConfig
from odradek.broker.settings.group import parse_group_overrides
from odradek.cluster.entity_configs import Configs, change_configs, read_configs
from odradek.common.errors import ConfigError
from odradek.coordination.errors import DamagedPayload, NoNode
from odradek.coordination.paths import group_entity, parse_entity_path
from odradek.coordination.store import Store

logger = logging.getLogger(__name__)

MakeChanges = Callable[[Configs], Sequence[Change]]

_ALL_GROUPS = group_entity("x").path.rpartition("/")[0]


class GroupConfigs:
    """What each group overrides. Lives on the broker's loop.

    `store` returns the current session, `config` the broker's current configuration. The settings of a
    group exist independently of the group.
    """

    def __init__(self, store: Callable[[], Store], config: Callable[[], BrokerConfig]) -> None:
        self._store = store
        self._config = config
        self._overrides: dict[str, Configs] = {}
        # One after another, so that what was read first is never kept last.
        self._loading = asyncio.Lock()

    async def load_all(self) -> None:
        """Read the settings of every group that has some, or had some."""
        try:
            names = await self._store().children(_ALL_GROUPS)
        except NoNode:
            names = []
        found = {parse_entity_path(f"{_ALL_GROUPS}/{name}").name for name in names}
        for group_id in sorted({one for one in found if one is not None} | self._overrides.keys()):
            await self.load(group_id)

    async def load(self, group_id: str) -> None:
        """Read one group's settings again and apply them; the old ones stay if the node is damaged."""
        async with self._loading:
            try:
                overrides = await self.read(group_id)
            except DamagedPayload as damage:
                logger.error("the settings of group %s cannot be read: %s", group_id, damage)
                return
            try:
                parse_group_overrides(overrides)
            except ConfigError as problem:
                # Another tool wrote it, or a later version.
                logger.error("the settings of group %s are not applied: %s", group_id, problem)
                overrides = {}
            if overrides:
                self._overrides[group_id] = overrides
            else:
                self._overrides.pop(group_id, None)

    async def read(self, group_id: str) -> Configs:
        """What was set for a group, as the store has it now."""
        return await read_configs(self._store(), group_entity(group_id))

    async def change(self, group_id: str, changes_of: MakeChanges, *, validate_only: bool) -> None:
        """Do what `changes_of` makes of the stored values."""

        def changed(stored: Configs) -> Mapping[str, str]:
            return alter_group(self._config(), stored, changes_of(stored))

        if validate_only:
            changed(await self.read(group_id))
            return
        await change_configs(self._store(), group_entity(group_id), changed)
        await self.load(group_id)

    def group_ids(self) -> list[str]:
        """The groups that have settings of their own."""
        return sorted(self._overrides)

    def find(self, group_id: str) -> GroupConfig | None:
        """What counts for a group that has settings of its own."""
        overrides = self._overrides.get(group_id)
        return None if overrides is None else self._config().group(overrides)
