"""Settings in the store: of topics, brokers, users and clients, with a notification of each change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from odradek.coordination import paths
from odradek.coordination.errors import BadVersion, NodeExists, NoNode
from odradek.coordination.paths import ConfigEntity
from odradek.coordination.payloads import decode_config, encode_config, encode_config_change
from odradek.coordination.store import Create, Operation, SetData, Store

Configs = dict[str, str]


async def read_configs(store: Store, entity: ConfigEntity) -> Configs:
    """What was set for an entity; nothing for one that has no node."""
    try:
        return decode_config((await store.get(entity.path)).payload)
    except NoNode:
        return {}


async def change_configs(
    store: Store, entity: ConfigEntity, change: Callable[[Configs], Mapping[str, str]]
) -> Configs:
    """Replace the settings by what `change` makes of them, and notify every broker.

    `change` may raise to refuse; it is called again after a concurrent write.
    """
    while True:
        try:
            node = await store.get(entity.path)
        except NoNode:
            changed = dict(change({}))
            write: Operation = Create(entity.path, encode_config(changed))
            await store.ensure_path(entity.path.rpartition("/")[0])
        else:
            changed = dict(change(decode_config(node.payload)))
            write = SetData(entity.path, encode_config(changed), node.stat.version)
        note = Create(paths.CONFIG_CHANGE_PREFIX, encode_config_change(entity), sequential=True)
        try:
            await store.multi([write, note])
        except (BadVersion, NodeExists, NoNode) as refusal:
            if refusal.operation_index != 0:
                raise
            continue
        return changed
