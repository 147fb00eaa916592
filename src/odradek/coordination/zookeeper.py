"""The store over a real ZooKeeper ensemble, by kazoo.

kazoo talks to the server in a thread of its own. It runs responses and watch events in two threads, out of
order; `_InOrderHandler` passes both to the loop in the order in which the server sent them. It also drops all
watches when a connection breaks; this store keeps its own list, sets them again after a reconnection, and
fires those whose node changed before any read continues.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType as KazooEventType
from kazoo.protocol.states import KazooState, WatchedEvent, ZnodeStat

from odradek.coordination.errors import (
    BadVersion,
    ConnectionLoss,
    InvalidPath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    OperationRefused,
    SessionExpired,
    StoreAccessDenied,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from odradek.coordination.store import (
    Check,
    Create,
    Created,
    Delete,
    EventType,
    Node,
    NodeStat,
    Operation,
    OperationResult,
    SessionListener,
    SessionState,
    SetData,
    Store,
    Watcher,
    WatchEvent,
)
from odradek.coordination.watches import Watch, Watches, WatchKind, missed_event
from odradek.coordination.znodes import ROOT, check_create_path, check_operations, check_path

DEFAULT_SESSION_TIMEOUT_MS = 18_000
DEFAULT_CONNECTION_TIMEOUT_MS = 18_000

_REFUSALS: dict[type, type[OperationRefused]] = {
    kazoo_errors.NoNodeError: NoNode,
    kazoo_errors.NodeExistsError: NodeExists,
    kazoo_errors.BadVersionError: BadVersion,
    kazoo_errors.NotEmptyError: NotEmpty,
    kazoo_errors.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
    kazoo_errors.BadArgumentsError: InvalidPath,
}
_DENIALS: dict[type, str] = {
    kazoo_errors.NoAuthError: "its ACL does not allow this: let it allow world:anyone, or the brokers by ip",
    kazoo_errors.SessionClosedRequireSaslError: "clients must log in by SASL, which odradek does not offer: "
    "remove sessionRequireClientSASLAuth and enforce.auth.* from the ensemble's configuration",
    kazoo_errors.AuthFailedError: "the login was refused",
}
_EVENT_TYPES = {
    KazooEventType.CREATED: EventType.CREATED,
    KazooEventType.DELETED: EventType.DELETED,
    KazooEventType.CHANGED: EventType.DATA_CHANGED,
    KazooEventType.CHILD: EventType.CHILDREN_CHANGED,
}


# minSessionTimeout is two ticks; Kafka's zookeeper.properties and most ensembles have ticks of 2-3 s.
USUAL_MIN_SESSION_TIMEOUT_MS = 6000


class _AtOnce:
    """Replaces kazoo's queue and its thread: what is put in is called at once."""

    def put(self, function: Callable[[], None]) -> None:
        function()


class _InOrderHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Calls back in the connection's own thread, in order of arrival; callbacks only schedule on the loop.

    `last_contact_s`: when a server last sent anything. kazoo does not keep it, and while requests are sent
    it never notices that no answers come.
    """

    queue_impl = _AtOnce

    def __init__(self) -> None:
        super().__init__()
        self.last_contact_s = time.monotonic()
        self._server: socket.socket | None = None

    def create_connection(self, *arguments: Any, **options: Any) -> socket.socket:
        self._server = super().create_connection(*arguments, **options)
        return self._server

    def select(self, *arguments: Any, **options: Any) -> Any:
        ready = super().select(*arguments, **options)
        if self._server in ready[0] and _has_bytes(self._server):
            self.last_contact_s = time.monotonic()
        return ready

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False


def _has_bytes(connection: socket.socket | None) -> bool:
    """A closed or broken connection is readable too."""
    try:
        return connection is not None and bool(connection.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


class ZooKeeperStore(Store):
    """One session at a ZooKeeper ensemble. Owned by the event loop that opened it."""

    def __init__(self, hosts: str, session_timeout_ms: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._hosts = hosts
        self._session_timeout_ms = session_timeout_ms
        self._handler = _InOrderHandler()
        self._client = KazooClient(
            hosts=hosts, timeout=session_timeout_ms / 1000, handler=self._handler, randomize_hosts=True
        )
        self._session_id = 0
        self._state = SessionState.CONNECTED
        self._listeners: list[SessionListener] = []
        self._watches = Watches()
        self._ended: StoreError | None = None
        # Reads wait for this: connected, and every watch set again.
        self._is_ready = asyncio.Event()
        self._connections = 0
        self._rearming: asyncio.Task[None] | None = None
        self._stopping: asyncio.Future[None] | None = None

    @classmethod
    async def open(
        cls,
        hosts: str,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        connection_timeout_ms: int = DEFAULT_CONNECTION_TIMEOUT_MS,
    ) -> ZooKeeperStore:
        """Begin a session; `hosts` is `host:port,host:port/chroot`, a missing chroot is created."""
        await _create_chroot(hosts, connection_timeout_ms)
        store = cls(hosts, session_timeout_ms)
        await _start(store._client, hosts, connection_timeout_ms)
        store._session_id, _password = store._client.client_id
        store._is_ready.set()
        store._client.add_listener(store._on_kazoo_state)
        if not store._client.connected:
            store._suspend()
        return store

    @property
    def session_id(self) -> int:
        """The id that the ensemble gave this session."""
        return self._session_id

    @property
    def state(self) -> SessionState:
        """The state of the session."""
        return self._state

    @property
    def last_contact_s(self) -> float:
        """When a server last sent anything; pings are answered even while nothing else is asked."""
        return self._handler.last_contact_s

    @property
    def crash_detection_ms(self) -> int:
        """The session time-out, rounded up to a tick of the ensemble.

        A tick is at most half of the shortest time-out that the ensemble grants, and kazoo does not say what
        was granted: if less than the usual minimum was requested, that minimum is used.
        """
        return max(self._session_timeout_ms, USUAL_MIN_SESSION_TIMEOUT_MS) * 3 // 2

    def add_listener(self, listener: SessionListener) -> None:
        """Call the listener after every later change of `state`."""
        self._listeners.append(listener)

    async def create(
        self, path: str, payload: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        """Make one node."""
        check_create_path(path, sequential=sequential)
        created, stat = await self._write(
            path,
            lambda: self._client.create_async(
                path, payload, ephemeral=ephemeral, sequence=sequential, include_data=True
            ),
        )
        return Created(created, _stat(stat))

    async def get(self, path: str, watcher: Watcher | None = None) -> Node:
        """Payload and facts of a node."""
        check_path(path)
        payload, stat = await self._read(
            path,
            lambda: self._client.get_async(path, self._hook(watcher)),
            lambda found: Watch(WatchKind.NODE, path, _stat(found[1])),
            watcher,
        )
        return Node(payload or b"", _stat(stat))

    async def exists(self, path: str, watcher: Watcher | None = None) -> NodeStat | None:
        """Facts of a node, or None."""
        check_path(path)
        found = await self._read(
            path,
            lambda: self._client.exists_async(path, self._hook(watcher)),
            lambda found: Watch(WatchKind.NODE, path, _stat_or_none(found)),
            watcher,
        )
        return _stat_or_none(found)

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """Names of the children, in order."""
        check_path(path)
        names, _ = await self._read(
            path,
            lambda: self._client.get_children_async(path, self._hook(watcher), include_data=True),
            lambda found: Watch(WatchKind.CHILDREN, path, _stat(found[1])),
            watcher,
        )
        return sorted(names)

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All in one transaction, or nothing."""
        check_operations(operations)
        results = await self._write(ROOT, lambda: self._commit_async(operations))
        for operation, result in zip(operations, results, strict=True):
            if type(result) in _DENIALS:
                raise _denied(self._hosts, operation.path, result)
        for index, (operation, result) in enumerate(zip(operations, results, strict=True)):
            refusal = _REFUSALS.get(type(result))
            if refusal is not None:
                raise refusal(operation.path, operation_index=index)
        return [_operation_result(result) for result in results]

    async def close(self) -> None:
        """End the session."""
        if self._ended is None:
            self._end(StoreClosed("the store was closed"))
        if self._stopping is not None:
            await self._stopping

    def _commit_async(self, operations: Sequence[Operation]) -> Any:
        transaction = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, payload, ephemeral, sequential):
                    transaction.create(path, payload, ephemeral=ephemeral, sequence=sequential)
                case SetData(path, payload, version):
                    transaction.set_data(path, payload, version)
                case Delete(path, version):
                    transaction.delete(path, version)
                case Check(path, version):
                    transaction.check(path, version)
        return transaction.commit_async()

    # Calls to kazoo

    async def _read(
        self, path: str, ask: Callable[[], Any], place: Callable[[Any], Watch], watcher: Watcher | None
    ) -> Any:
        """A read may be repeated: if the connection broke meanwhile, only a new result counts."""
        while True:
            await self._ready()
            connections = self._connections

            def keep_watch(found: Any, connections: int = connections) -> None:
                if watcher is not None and connections == self._connections:
                    self._watches.add(place(found), watcher)

            try:
                found = await self._call(path, ask, keep_watch)
            except ConnectionLoss:
                await asyncio.sleep(0)
                continue
            if connections == self._connections:
                return found

    async def _write(self, path: str, ask: Callable[[], Any]) -> Any:
        await self._ready()
        return await self._call(path, ask)

    async def _ready(self) -> None:
        if self._ended is None:
            await self._is_ready.wait()
        if self._ended is not None:
            raise self._ended

    def _call(
        self, path: str, ask: Callable[[], Any], keep: Callable[[Any], None] | None = None
    ) -> Awaitable[Any]:
        future = self._loop.create_future()
        ask().rawlink(lambda result: self._hop(self._finish, path, future, result, keep))
        return future

    def _finish(
        self, path: str, future: asyncio.Future[Any], result: Any, keep: Callable[[Any], None] | None
    ) -> None:
        if future.done():
            return  # its caller was cancelled
        if result.exception is not None:
            future.set_exception(self._as_store_error(path, result.exception))
            return
        if keep is not None:
            keep(result.value)  # now and not when the caller runs: the event may be the very next message
        future.set_result(result.value)

    def _as_store_error(self, path: str, error: Exception) -> StoreError:
        if type(error) in _REFUSALS:
            return _REFUSALS[type(error)](path)
        if self._ended is not None:
            return self._ended
        if type(error) in _DENIALS:
            return _denied(self._hosts, path, error)
        if isinstance(error, kazoo_errors.SessionExpiredError):
            return SessionExpired(f"ZooKeeper at {self._hosts} ended the session")
        if isinstance(error, kazoo_errors.ConnectionLoss | kazoo_errors.ConnectionClosedError):
            return ConnectionLoss(
                f"{path}: the connection to ZooKeeper at {self._hosts} broke before an answer"
            )
        return StoreUnavailable(f"{path}: ZooKeeper at {self._hosts} answered {error!r}")

    def _hop(self, function: Callable[..., None], *arguments: Any) -> None:
        """From kazoo's thread to the loop, in order."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    # Watches

    def _hook(self, watcher: Watcher | None) -> Callable[[WatchedEvent], None] | None:
        return None if watcher is None else self._on_kazoo_event

    def _on_kazoo_event(self, event: WatchedEvent) -> None:
        if (
            event.type in _EVENT_TYPES
        ):  # else: kazoo drops its watches as the connection broke; this store does not
            self._hop(self._fire, WatchEvent(_EVENT_TYPES[event.type], event.path))

    def _fire(self, event: WatchEvent) -> None:
        for watcher, fired in self._watches.trigger([event]):
            self._loop.call_soon(watcher, fired)

    async def _rearm(self) -> None:
        """Set every watch again on the new connection; fire those that missed something."""
        try:
            await asyncio.gather(*[self._rearm_one(watch) for watch in list(self._watches)])
        except StoreError:
            return  # the connection broke again, or the session expired: the next state follows
        if self._ended is None:
            self._is_ready.set()
            self._change(SessionState.CONNECTED)

    async def _rearm_one(self, watch: Watch) -> None:
        try:
            current = await self._ask_again(watch)
        except NoNode:
            current = None
        event = missed_event(watch, current)
        if event is not None:
            self._fire(event)

    async def _ask_again(self, watch: Watch) -> NodeStat | None:
        path, hook = watch.path, self._on_kazoo_event
        if watch.kind is WatchKind.NODE:
            return _stat_or_none(await self._call(path, lambda: self._client.exists_async(path, hook)))
        _, stat = await self._call(
            path, lambda: self._client.get_children_async(path, hook, include_data=True)
        )
        return _stat(stat)

    # State of the session

    def _on_kazoo_state(self, state: str) -> None:
        self._hop(self._follow, state)

    def _follow(self, state: str) -> None:
        if self._ended is not None:
            return
        if state == KazooState.SUSPENDED:
            self._suspend()
        elif state == KazooState.CONNECTED:
            self._rearming = self._loop.create_task(self._rearm())
        else:
            # kazoo would open another session; a store is one session, so it ends here.
            self._end(SessionExpired(f"ZooKeeper at {self._hosts} ended the session"))
            self._change(SessionState.EXPIRED)

    def _suspend(self) -> None:
        self._connections += 1
        self._is_ready.clear()
        if self._rearming is not None:
            self._rearming.cancel()
        self._change(SessionState.SUSPENDED)

    def _end(self, reason: StoreError) -> None:
        self._ended = reason
        self._watches.clear()
        self._is_ready.set()
        self._stopping = self._loop.run_in_executor(None, _stop, self._client)

    def _change(self, state: SessionState) -> None:
        if state is not self._state:
            self._state = state
            for listener in list(self._listeners):
                listener(state)


def _denied(hosts: str, path: str, error: Exception) -> StoreAccessDenied:
    return StoreAccessDenied(f"ZooKeeper at {hosts} refuses {path}: {_DENIALS[type(error)]}")


async def _create_chroot(hosts: str, connection_timeout_ms: int) -> None:
    """The chroot must exist before it can be used."""
    servers, slash, chroot = hosts.partition("/")
    if not chroot:
        return
    client = KazooClient(hosts=servers)
    await _start(client, servers, connection_timeout_ms)
    loop = asyncio.get_running_loop()
    try:
        await loop.run_in_executor(None, client.ensure_path, slash + chroot)
    except kazoo_errors.KazooException as error:
        if type(error) in _DENIALS:
            raise _denied(servers, slash + chroot, error) from error
        problem = f"{slash + chroot} cannot be created: ZooKeeper at {servers} answered {error!r}"
        raise StoreUnavailable(problem) from error
    finally:
        await loop.run_in_executor(None, _stop, client)


async def _start(client: KazooClient, hosts: str, connection_timeout_ms: int) -> None:
    """Connect. If cancelled, it leaves nothing that the end of the loop or process would wait for."""
    loop, connected = asyncio.get_running_loop(), asyncio.Event()

    def on_state(state: str) -> None:
        if state == KazooState.CONNECTED:
            loop.call_soon_threadsafe(connected.set)

    client.add_listener(on_state)
    client.start_async()
    try:
        await asyncio.wait_for(connected.wait(), connection_timeout_ms / 1000)
    except TimeoutError as error:
        _abandon(client)
        problem = f"no ZooKeeper answered at {hosts} within {connection_timeout_ms} ms"
        raise StoreUnavailable(f"{problem}; check that it runs and can be reached") from error
    except asyncio.CancelledError:
        _abandon(client)
        raise
    finally:
        client.remove_listener(on_state)


def _abandon(client: KazooClient) -> None:
    """Stop a client that is not connected, without waiting, as a pending connect may take long."""
    threading.Thread(target=_stop, args=(client,), name="abandoned-zookeeper", daemon=True).start()


def _stop(client: KazooClient) -> None:
    client.stop()
    client.close()


def _stat(stat: ZnodeStat) -> NodeStat:
    return NodeStat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_length=stat.dataLength,
        num_children=stat.numChildren,
    )


def _stat_or_none(stat: ZnodeStat | None) -> NodeStat | None:
    return None if stat is None else _stat(stat)


def _operation_result(result: Any) -> OperationResult:
    if isinstance(result, Exception):
        raise StoreUnavailable(f"ZooKeeper refused a transaction: {result!r}")
    if isinstance(result, ZnodeStat):
        return _stat(result)
    return result if isinstance(result, str) else None
