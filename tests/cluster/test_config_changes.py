from __future__ import annotations

import asyncio

from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.change_notifications import NOTIFICATION_LIFETIME_MS
from odradek.cluster.config_changes import ConfigChanges
from odradek.cluster.entity_configs import change_configs, read_configs
from odradek.cluster.membership.membership import ensure_persistent_paths
from odradek.coordination import paths
from odradek.coordination.paths import ConfigEntity, broker_entity, topic_entity, user_client_entity
from odradek.testing.memory_store import MemoryEnsemble


class Hands:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.time_ms = 1_000_000

    def now_ms(self) -> int:
        return self.time_ms


def test_every_change_is_notified_once_in_order_from_the_start_on():
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store, other = ensemble.open_session(), ensemble.open_session()
        await ensure_persistent_paths(store)
        await change_configs(other, topic_entity("before"), lambda _: {"a": "1"})
        notified: list[ConfigEntity] = []

        async def on_change(entity: ConfigEntity) -> None:
            notified.append(entity)

        changes = ConfigChanges(store, on_change)
        await changes.start()
        for entity in (topic_entity("t"), broker_entity(None), user_client_entity("u", "c/d")):
            await change_configs(other, entity, lambda _: {"a": "1"})
            await change_configs(other, entity, lambda old: {**old, "b": "2"})
            assert await read_configs(other, entity) == {"a": "1", "b": "2"}
        await other.create(paths.CONFIG_CHANGE_PREFIX, b"damaged", sequential=True)
        await change_configs(other, topic_entity("last"), lambda _: {})
        await asyncio.sleep(1)
        await changes.stop()

        twice = [topic_entity("t"), broker_entity(None), user_client_entity("u", "c/d")]
        assert notified == [one for entity in twice for one in (entity, entity)] + [topic_entity("last")]

    run_in_virtual_time(scenario())


def test_old_notes_are_tidied_up():
    async def scenario() -> None:
        clock = Hands()
        ensemble = MemoryEnsemble(clock.now_ms)
        store = ensemble.open_session()
        await ensure_persistent_paths(store)

        async def on_change(_: ConfigEntity) -> None:
            pass

        changes = ConfigChanges(store, on_change, clock)
        await changes.start()
        await change_configs(store, topic_entity("old"), lambda _: {})
        clock.time_ms += NOTIFICATION_LIFETIME_MS + 1
        await change_configs(store, topic_entity("new"), lambda _: {})
        await asyncio.sleep(1)
        await changes.stop()

        assert await store.children(paths.CONFIG_CHANGES) == ["config_change_0000000001"]

    run_in_virtual_time(scenario())
