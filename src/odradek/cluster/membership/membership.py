"""This broker's membership: its id, its registration, and the other brokers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from uuid import UUID

from odradek.cluster import tasks
from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH, Broker
from odradek.cluster.membership.registrations import read_brokers
from odradek.cluster.random_ids import random_uuid
from odradek.common.errors import OdradekError
from odradek.common.ids import uuid_to_text
from odradek.coordination import paths
from odradek.coordination.errors import (
    DamagedPayload,
    NodeExists,
    NoNode,
    SessionExpired,
    StoreClosed,
    StoreUnavailable,
)
from odradek.coordination.payloads import BrokerRegistration, decode_cluster_id, encode_cluster_id
from odradek.coordination.store import Create, Store, WatchEvent

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1


class BrokerIdInUse(OdradekError):
    """Another live broker is registered under this id."""

    def __init__(self, broker_id: int, holder: str) -> None:
        self.broker_id = broker_id
        super().__init__(
            f"broker id {broker_id} is taken by a live broker ({holder}); "
            f"give this one another broker.id, or stop the other first"
        )


async def ensure_persistent_paths(store: Store) -> None:
    """The nodes that every part of the cluster expects; one transaction for all that are missing."""
    wanted = dict.fromkeys(one for path in paths.PERSISTENT_PATHS for one in _with_parents(path))
    stats = await asyncio.gather(*(store.exists(path) for path in wanted))
    missing = [path for path, stat in zip(wanted, stats, strict=True) if stat is None]
    try:
        await store.multi([Create(path) for path in missing])
    except NodeExists:
        # Another broker is starting at the same time.
        for path in missing:
            await store.ensure_path(path)


def _with_parents(path: str) -> list[str]:
    names = path.split("/")
    return ["/".join(names[:end]) for end in range(2, len(names) + 1)]


async def ensure_cluster_id(
    store: Store, known_id: str | None = None, new_id: Callable[[], UUID] = random_uuid
) -> str:
    """The cluster id; the first broker generates it, unless its log directories already have one."""
    try:
        return decode_cluster_id((await store.get(paths.CLUSTER_ID)).payload)
    except NoNode:
        parents = [Create(path) for path in _with_parents(paths.CLUSTER_ID)[:-1]]
    drawn = Create(paths.CLUSTER_ID, encode_cluster_id(known_id or uuid_to_text(new_id())))
    missing = [one for one in parents if await store.exists(one.path) is None]
    with contextlib.suppress(NodeExists):
        await store.multi([*missing, drawn])
    return decode_cluster_id((await store.get(paths.CLUSTER_ID)).payload)


async def generate_broker_id(store: Store, reserved_broker_max_id: int = 1000) -> int:
    """An id that no broker had before, above those that may be configured.

    The number is the version of /brokers/seqid, which every write raises.
    """
    await store.ensure_path(paths.BROKER_SEQUENCE_ID)
    return reserved_broker_max_id + (await store.set(paths.BROKER_SEQUENCE_ID, b"")).version


async def register_broker(
    store: Store, broker_id: int, registration: BrokerRegistration, *, wait_s: float = 0.0
) -> int:
    """Register on this session and return the broker epoch; BrokerIdInUse if another holds the id.

    A broker that was killed stays registered until its session expires: for `wait_s` a registration may be
    that of our own earlier run, and is waited for.
    """
    path = paths.broker_id(broker_id)
    deadline = asyncio.get_running_loop().time() + wait_s
    is_announced = False
    while True:
        try:
            return (await store.create(path, registration.encode(), ephemeral=True)).stat.czxid
        except NodeExists:
            gone = asyncio.Event()
        stat = await store.exists(path, lambda _, gone=gone: gone.set())  # type: ignore[misc]
        if stat is None:
            continue
        if stat.ephemeral_owner == store.session_id:
            # Our own: an earlier attempt whose response was lost.
            await store.set(path, registration.encode())
            return stat.czxid
        if not is_announced and wait_s > 0:
            is_announced = True
            logger.warning(
                "broker id %d is still registered (%s); waiting up to %.0f s for that registration to expire,"
                " as it does if it is of an earlier run of this broker",
                broker_id,
                await _holder(store, path),
                wait_s,
            )
        try:
            await asyncio.wait_for(gone.wait(), deadline - asyncio.get_running_loop().time())
        except TimeoutError:
            raise BrokerIdInUse(broker_id, await _holder(store, path)) from None


async def _holder(store: Store, path: str) -> str:
    try:
        registered = BrokerRegistration.decode((await store.get(path)).payload)
    except (NoNode, DamagedPayload):
        return "its registration cannot be read"
    return ", ".join(map(str, registered.listeners))


class LiveBrokers:
    """The live brokers as this one sees them. Owned by the broker's event loop; one per session."""

    def __init__(self, store: Store, on_change: Callable[[dict[int, Broker]], None]) -> None:
        self.brokers: dict[int, Broker] = {}
        self._store = store
        self._on_change = on_change
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def epochs(self) -> dict[int, int]:
        """The epoch of each registered broker."""
        return {id_: broker.epoch for id_, broker in self.brokers.items()}

    def epoch(self, broker_id: int) -> int:
        """The epoch of one registered broker."""
        broker = self.brokers.get(broker_id)
        return UNKNOWN_BROKER_EPOCH if broker is None else broker.epoch

    async def start(self) -> None:
        """Read the registered brokers and watch for changes."""
        await self._read()
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching."""
        await tasks.cancel(self._task)

    async def _watch(self) -> None:
        while True:
            await self._has_changed.wait()
            try:
                await self._read()
            except StoreUnavailable as error:
                logger.warning("the brokers cannot be read just now: %s", error)
                await asyncio.sleep(RETRY_BACKOFF_S)
                self._has_changed.set()
            except (SessionExpired, StoreClosed):
                return

    async def _read(self) -> None:
        self._has_changed.clear()
        brokers = await read_brokers(self._store, self._on_event, lambda _: self._on_event)
        if brokers != self.brokers:
            self.brokers = brokers
            self._on_change(brokers)

    def _on_event(self, _: WatchEvent) -> None:
        self._has_changed.set()
