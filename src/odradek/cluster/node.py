"""This broker in the cluster, over all its sessions: registration, watches and controller election.

    connect()   a session at the store; the cluster's id and ours     before the logs are opened
    join()      registration, watches, controller election            when the listeners are bound
    leave()     everything stopped, the registration removed at once

When a session expires, the node opens a new one and joins again: with a new broker epoch, under its old id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.cluster import tasks
from odradek.cluster.acls import AclChanges, ClusterAcls
from odradek.cluster.config_changes import ConfigChanges
from odradek.cluster.connection_losses import Result, repeat_when_lost
from odradek.cluster.controller.channels import Connect
from odradek.cluster.controller.controller import (
    Controller,
    ControllerSettings,
    never_unclean,
    nothing_to_load,
)
from odradek.cluster.controller.counters import ElectionCounters
from odradek.cluster.controller.state.context import ControllerContext
from odradek.cluster.features import SUPPORTED
from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH, Broker
from odradek.cluster.membership.membership import (
    BrokerIdInUse,
    LiveBrokers,
    ensure_cluster_id,
    ensure_persistent_paths,
    generate_broker_id,
    register_broker,
)
from odradek.common.clock import Clock, SystemClock
from odradek.coordination.errors import StoreError
from odradek.coordination.paths import ConfigEntity
from odradek.coordination.payloads import BrokerRegistration, Listener
from odradek.coordination.store import SessionState, Store

logger = logging.getLogger(__name__)

REJOIN_BACKOFF_S = 0.5


class NodeSettings(NamedTuple):
    """The node's part of the broker's configuration; an id of None is generated."""

    broker_id: int | None = None
    reserved_broker_max_id: int = 1000
    rack: str | None = None
    session_timeout_ms: int = 18_000
    # How long steps of a start are repeated whose connection was lost.
    connection_timeout_ms: int = 18_000
    controller: ControllerSettings = ControllerSettings()


class NodeHooks(NamedTuple):
    """Callbacks into the broker, and what the controller uses of it. All are called on its loop."""

    connect: Connect
    on_registered: Callable[[int], None]
    on_brokers: Callable[[dict[int, Broker]], None]
    on_config_change: Callable[[ConfigEntity], Awaitable[None]]
    # Reads all settings again: changes made while there was no session are not reported one by one.
    load_configs: Callable[[], Awaitable[None]]
    # The broker must stop: another one has its id now.
    on_fatal: Callable[[Exception], None]
    allows_unclean: Callable[[str], bool] = never_unclean
    # Reads a topic's settings, before `allows_unclean` is called.
    load_settings: Callable[[str], Awaitable[None]] = nothing_to_load
    # None without an authorizer: ACLs are not read then.
    acls: ClusterAcls | None = None
    # Another broker is controller now, or this one.
    on_controller: Callable[[], None] = lambda: None


class ClusterNode:
    """Owned by the broker's event loop."""

    def __init__(
        self,
        open_store: Callable[[], Awaitable[Store]],
        settings: NodeSettings,
        hooks: NodeHooks,
        clock: Clock | None = None,
    ) -> None:
        self._open_store = open_store
        self._settings = settings
        self._hooks = hooks
        self._clock = clock or SystemClock()
        self._store: Store | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._parts: _Parts | None = None
        self._rejoining: asyncio.Task[None] | None = None
        self.elections = ElectionCounters()
        self.broker_id = -1
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.cluster_id = ""

    @property
    def store(self) -> Store:
        """The current session; only after `connect`."""
        assert self._store is not None, "not connected"
        return self._store

    @property
    def controller(self) -> Controller:
        """The controller of the current session; only after `join`."""
        assert self._parts is not None, "not joined"
        return self._parts.controller

    @property
    def membership(self) -> LiveBrokers:
        """The other brokers as this session sees them; only after `join`."""
        assert self._parts is not None, "not joined"
        return self._parts.membership

    @property
    def controller_context(self) -> ControllerContext | None:
        """The state of the controller; None while this broker is not the controller."""
        return None if self._parts is None else self._parts.controller.context

    @property
    def controller_id(self) -> int | None:
        """The controller as this broker knows it."""
        return None if self._parts is None else self._parts.controller.controller_id

    def live_brokers(self) -> dict[int, Broker]:
        """The registered brokers as this one knows them; those of the last session while there is none."""
        return {} if self._parts is None else self._parts.membership.brokers

    async def connect(self, known_broker_id: int | None = None, known_cluster_id: str | None = None) -> None:
        """Open a session and determine both ids.

        `known_broker_id` is the one in meta.properties: a broker whose id was generated keeps it. A given id
        has precedence, so that log directories of another broker are refused. A store without a cluster
        id gets `known_cluster_id`.
        """
        store = self._store = await self._open_store()
        settings = self._settings
        await self.repeat_when_lost(lambda: ensure_persistent_paths(store))
        self.cluster_id = await self.repeat_when_lost(lambda: ensure_cluster_id(store, known_cluster_id))
        broker_id = known_broker_id if settings.broker_id is None else settings.broker_id
        if broker_id is None:
            broker_id = await self.repeat_when_lost(
                lambda: generate_broker_id(store, settings.reserved_broker_max_id)
            )
        self.broker_id = broker_id

    async def join(self, listeners: tuple[Listener, ...]) -> None:
        """Register and start the parts; BrokerIdInUse if a live broker has this id."""
        self._listeners = listeners
        await self._join(self.store)

    async def repeat_when_lost(self, step: Callable[[], Awaitable[Result]]) -> Result:
        """The result of a step at the store that may be done twice, over lost connections."""
        return await repeat_when_lost(step, self._settings.connection_timeout_ms / 1000)

    async def leave(self) -> None:
        """Stop the parts; the session ends, and with it the registration and the controllership."""
        await tasks.cancel(self._rejoining)
        await self._stop_parts()
        if self._store is not None:
            await self._store.close()

    async def _join(self, store: Store) -> None:
        registration = BrokerRegistration(
            self._listeners, self._clock.now_ms(), self._settings.rack, features=SUPPORTED
        )
        self.broker_epoch = await self.repeat_when_lost(
            lambda: register_broker(
                store, self.broker_id, registration, wait_s=store.crash_detection_ms / 1000
            )
        )
        self._hooks.on_registered(self.broker_epoch)
        self._parts = _Parts.of(
            store, self.broker_id, self._settings, self._hooks, self._clock, self.elections
        )
        await self._parts.start()
        store.add_listener(self._on_session)
        if store.state is SessionState.EXPIRED:
            self._on_session(store.state)

    async def _stop_parts(self) -> None:
        if self._parts is not None:
            await self._parts.stop()

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            logger.warning("the session at the store has expired; joining again")
            self._rejoining = asyncio.get_running_loop().create_task(self._rejoin())

    async def _rejoin(self) -> None:
        while True:
            await self._stop_parts()
            await self.store.close()
            try:
                self._store = await self._open_store()
                await self._join(self._store)
                return
            except BrokerIdInUse as error:
                self._hooks.on_fatal(error)
                return
            except StoreError as error:
                logger.warning("cannot join again yet: %s", error)
            except Exception:  # a task root: without another attempt the broker would be away for good
                logger.exception("cannot join again yet")
            await asyncio.sleep(REJOIN_BACKOFF_S)


@dataclass(slots=True, eq=False, repr=False)
class _Parts:
    """The parts that exist for one session."""

    membership: LiveBrokers
    config_changes: ConfigChanges
    load_configs: Callable[[], Awaitable[None]]
    acl_changes: AclChanges | None
    controller: Controller

    @classmethod
    def of(
        cls,
        store: Store,
        broker_id: int,
        settings: NodeSettings,
        hooks: NodeHooks,
        clock: Clock,
        elections: ElectionCounters,
    ) -> _Parts:
        return cls(
            membership=LiveBrokers(store, hooks.on_brokers),
            config_changes=ConfigChanges(store, hooks.on_config_change, clock),
            load_configs=hooks.load_configs,
            acl_changes=None if hooks.acls is None else AclChanges(store, hooks.acls, clock),
            controller=Controller(
                store,
                broker_id,
                settings.controller,
                hooks.connect,
                allows_unclean=hooks.allows_unclean,
                load_settings=hooks.load_settings,
                session_timeout_ms=settings.session_timeout_ms,
                clock=clock,
                on_controller=hooks.on_controller,
                elections=elections,
            ),
        )

    async def start(self) -> None:
        await self.membership.start()
        await self.config_changes.start()
        await self.load_configs()
        if self.acl_changes is not None:
            await self.acl_changes.start()
        await self.controller.start()

    async def stop(self) -> None:
        await self.controller.stop()
        if self.acl_changes is not None:
            await self.acl_changes.stop()
        await self.config_changes.stop()
        await self.membership.stop()
