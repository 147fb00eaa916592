"""Reads the brokers that are registered in the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from odradek.cluster.membership.brokers import Broker, Endpoint, SecurityProtocol
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode
from odradek.coordination.payloads import BrokerRegistration
from odradek.coordination.store import Node, Store, Watcher

logger = logging.getLogger(__name__)


async def read_brokers(
    store: Store, watcher: Watcher, watcher_of: Callable[[int], Watcher]
) -> dict[int, Broker]:
    """Every registered broker by id; `watcher` watches the list of ids, `watcher_of` one registration."""
    names = await store.children(paths.BROKER_IDS, watcher)
    broker_ids = [int(name) for name in names if name.isdecimal()]
    found = await asyncio.gather(*(read_broker(store, id_, watcher_of(id_)) for id_ in broker_ids))
    return {broker.broker_id: broker for broker in found if broker is not None}


async def read_broker(store: Store, broker_id: int, watcher: Watcher) -> Broker | None:
    """One registered broker; None if it does not exist or is damaged."""
    try:
        return _broker(broker_id, await store.get(paths.broker_id(broker_id), watcher))
    except NoNode:
        return None
    except DamagedPayload as damage:
        logger.error("broker %d is ignored: %s", broker_id, damage)
        return None


def _broker(broker_id: int, node: Node) -> Broker:
    written = BrokerRegistration.decode(node.payload)
    endpoints = tuple(
        Endpoint(one.name, one.host, one.port, _security_protocol(one.security_protocol))
        for one in written.listeners
    )
    return Broker(broker_id, endpoints, written.rack, epoch=node.stat.czxid, features=written.features)


def _security_protocol(name: str) -> SecurityProtocol:
    if name not in SecurityProtocol.__members__:
        raise DamagedPayload("broker registration", f"{name!r} is not a security protocol")
    return SecurityProtocol[name]
