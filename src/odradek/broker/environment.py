"""What a broker uses of its machine: the session at the store, threads and listening sockets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from odradek.broker.background.io_threads import IoThreads
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.coordination.store import Store
from odradek.coordination.urls import open_store
from odradek.net.server import Listener


async def open_configured_store(config: BrokerConfig) -> Store:
    """A session at the store that `odradek.coordination` names."""
    return await open_store(
        config.coordination_url,
        session_timeout_ms=config.zookeeper_session_timeout_ms,
        connection_timeout_ms=config.zookeeper_connection_timeout_ms,
    )


class BrokerEnvironment(NamedTuple):
    """The real machine by default; a simulation passes its own functions."""

    open_store: Callable[[BrokerConfig], Awaitable[Store]] = open_configured_store
    make_threads: Callable[[int], IoThreads] = IoThreads
    make_listener: Callable[..., Any] = Listener
