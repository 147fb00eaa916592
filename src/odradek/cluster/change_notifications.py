"""Reads the sequential nodes by which brokers and tools announce a change to every broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from odradek.cluster import tasks
from odradek.common.clock import Clock, SystemClock
from odradek.coordination import paths
from odradek.coordination.errors import DamagedPayload, NoNode, SessionExpired, StoreClosed, StoreUnavailable
from odradek.coordination.store import Store, WatchEvent

logger = logging.getLogger(__name__)

# As in Kafka: a broker that was disconnected for longer has read everything again.
NOTIFICATION_LIFETIME_MS = 15 * 60 * 1000
RETRY_BACKOFF_S = 0.1


class ChangeNotifications:
    """Calls `on_change` with the payload of each notification below `parent`, in order.

    Owned by the broker's event loop; made for one session. Notifications from before `start` are skipped:
    the caller reads the state itself after `start`. When `on_change` raises StoreUnavailable, the
    notification is tried again.
    """

    def __init__(
        self,
        store: Store,
        parent: str,
        on_change: Callable[[bytes], Awaitable[None]],
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._parent = parent
        self._on_change = on_change
        self._clock = clock or SystemClock()
        self._last_number = -1
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find the last notification, and watch for later ones."""
        names = await self._names()
        self._last_number = max(map(paths.sequence_number, names), default=-1)
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching."""
        await tasks.cancel(self._task)

    async def _watch(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            try:
                await self._read()
            except StoreUnavailable as error:
                logger.warning("the changes at %s cannot be read, trying again: %s", self._parent, error)
                await asyncio.sleep(RETRY_BACKOFF_S)
                self._has_changed.set()
            except (SessionExpired, StoreClosed):
                return

    async def _names(self) -> list[str]:
        names = await self._store.children(self._parent, self._on_event)
        return [name for name in names if name[-10:].isdecimal()]

    async def _read(self) -> None:
        for name in sorted(await self._names(), key=paths.sequence_number):
            path = f"{self._parent}/{name}"
            try:
                node = await self._store.get(path)
                if paths.sequence_number(name) > self._last_number:
                    await self._handle(path, node.payload)
                    self._last_number = paths.sequence_number(name)
                if self._clock.now_ms() - node.stat.ctime_ms > NOTIFICATION_LIFETIME_MS:
                    await self._store.delete(path)
            except NoNode:
                continue  # another broker deleted it first

    async def _handle(self, path: str, payload: bytes) -> None:
        try:
            await self._on_change(payload)
        except DamagedPayload as damage:
            logger.error("%s is ignored: %s", path, damage)

    def _on_event(self, _: WatchEvent) -> None:
        self._has_changed.set()
