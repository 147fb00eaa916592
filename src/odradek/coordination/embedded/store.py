"""The embedded store: a SQLite file that any number of broker processes of one machine share.

`SqliteStore` is used on the event loop; a thread (worker.py) does the work. The loop also sends
heartbeats: the session of a process whose loop hangs expires (sessions.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from odradek.coordination.embedded.database import Database
from odradek.coordination.embedded.worker import (
    Close,
    Found,
    Job,
    JobResult,
    Read,
    Worker,
    Write,
    monotonic_ms,
)
from odradek.coordination.errors import NoNode, SessionExpired, StoreClosed, StoreError, StoreUnavailable
from odradek.coordination.store import (
    Create,
    Created,
    Node,
    NodeStat,
    Operation,
    OperationResult,
    SessionListener,
    SessionState,
    Store,
    Watcher,
)
from odradek.coordination.watches import Watch, WatchDelivery, WatchKind
from odradek.coordination.znodes import Draft, Znode, check_path

DEFAULT_SESSION_TIMEOUT_MS = 18_000
BEATS_PER_TIMEOUT = 10


CRASH_DETECTION_MS = 1000


class SqliteStore(Store):
    """One session at the embedded store. Owned by the event loop that opened it."""

    def __init__(self, path: Path, session_timeout_ms: int, is_synced: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = Worker(path, session_timeout_ms, self._loop, self, is_synced=is_synced)
        self._session_timeout_ms = session_timeout_ms
        self._state = SessionState.CONNECTED
        self._listeners: list[SessionListener] = []
        self._pending: set[asyncio.Future[Any]] = set()
        self._ended: StoreError | None = None
        self._beat_timer: asyncio.TimerHandle | None = None
        self._beaten_ms = monotonic_ms()
        self._is_confirming = False

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        is_synced: bool = True,
    ) -> SqliteStore:
        """Open or create the file and begin a session; StoreUnavailable if the path cannot be used."""
        store = cls(Path(path), session_timeout_ms, is_synced)
        opened: asyncio.Future[None] = store._loop.create_future()
        store._worker.start(opened)
        await opened
        store._beat()
        return store

    @property
    def session_id(self) -> int:
        """A random number that the file of this session is named after."""
        return self._worker.session_id

    @property
    def state(self) -> SessionState:
        """The state of the session."""
        return self._state

    @property
    def last_contact_s(self) -> float:
        """When the thread last read or wrote the database."""
        return self._worker.contact_ms / 1000

    @property
    def crash_detection_ms(self) -> int:
        """The kernel reports the exit of a process at once."""
        return CRASH_DETECTION_MS

    def add_listener(self, listener: SessionListener) -> None:
        """Call the listener after every later change of `state`."""
        self._listeners.append(listener)

    async def create(
        self, path: str, payload: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        """Make one node."""
        operation = Create(path, payload, ephemeral, sequential)
        created: Created = await self._ask(partial(Write, run=partial(_create, operation)))
        return created

    async def get(self, path: str, watcher: Watcher | None = None) -> Node:
        """Payload and facts of a node."""
        node: Node = await self._ask(partial(Read, run=partial(_get, path), watcher=watcher))
        return node

    async def exists(self, path: str, watcher: Watcher | None = None) -> NodeStat | None:
        """Facts of a node, or None."""
        stat: NodeStat | None = await self._ask(partial(Read, run=partial(_exists, path), watcher=watcher))
        return stat

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """Names of the children, in order."""
        names: list[str] = await self._ask(partial(Read, run=partial(_children, path), watcher=watcher))
        return names

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All in one transaction, or nothing."""
        run = partial(_apply_all, tuple(operations))
        results: list[OperationResult] = await self._ask(partial(Write, run=run))
        return results

    async def close(self) -> None:
        """End the session; its ephemeral nodes are removed at once."""
        if self._ended is None:
            closed = self._submit(Close)
            self._stop(StoreClosed("the store was closed"))
            await closed

    async def _ask(self, make_job: Callable[[asyncio.Future[Any]], Job]) -> Any:
        if self._ended is not None:
            raise self._ended
        return await self._submit(make_job)

    def _submit(self, make_job: Callable[[asyncio.Future[Any]], Job]) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        self._worker.submit(make_job(future))
        return future

    # Called by the thread, through the loop

    def deliver(self, deliveries: Sequence[WatchDelivery], outcomes: Sequence[JobResult]) -> None:
        """Watch events first, then results: callers run after the watchers."""
        for watcher, event in deliveries:
            self._loop.call_soon(watcher, event)
        for future, result, error in outcomes:
            if future.done():
                continue  # its caller was cancelled
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

    def end(self, error: Exception) -> None:
        """The session has ended; pending calls fail."""
        if not isinstance(error, StoreError):
            self._loop.call_exception_handler({"message": "the store's thread failed", "exception": error})
        if self._ended is None:
            self._stop(SessionExpired(str(error)))
            self._change(SessionState.EXPIRED)

    def _stop(self, reason: StoreError) -> None:
        self._ended = reason
        if self._beat_timer is not None:
            self._beat_timer.cancel()
        if isinstance(reason, SessionExpired):
            for future in self._pending:
                if not future.done():
                    future.set_exception(reason)

    # State of the session

    def _beat(self) -> None:
        """Send a heartbeat, and check the time since the last contact."""
        now_ms = monotonic_ms()
        doubt_ms = self._session_timeout_ms // 3
        was_hanging = now_ms - self._beaten_ms > doubt_ms
        is_without_contact = now_ms - self._worker.contact_ms > doubt_ms
        self._beaten_ms = now_ms
        self._worker.loop_beats += 1
        if was_hanging or is_without_contact:
            self._change(SessionState.SUSPENDED)
        if self._state is SessionState.SUSPENDED and not self._is_confirming:
            self._is_confirming = True
            self._confirmation = self._loop.create_task(self._confirm())
        interval_s = self._session_timeout_ms / BEATS_PER_TIMEOUT / 1000
        self._beat_timer = self._loop.call_later(interval_s, self._beat)

    async def _confirm(self) -> None:
        """Any read that succeeds proves that the session is live."""
        try:
            await self.exists("/")
        except (StoreUnavailable, SessionExpired, StoreClosed):
            return
        finally:
            self._is_confirming = False
        self._change(SessionState.CONNECTED)

    def _change(self, state: SessionState) -> None:
        if state is not self._state:
            self._state = state
            for listener in list(self._listeners):
                listener(state)


# What the thread runs for each call.


def _create(operation: Create, draft: Draft) -> Created:
    (path,) = draft.apply_all([operation])
    assert isinstance(path, str)
    node = draft.find(path)
    assert node is not None
    return Created(path, node.stat())


def _apply_all(operations: Sequence[Operation], draft: Draft) -> list[OperationResult]:
    return draft.apply_all(operations)


def _get(path: str, database: Database) -> Found:
    node = _find(path, database)
    stat = node.stat()
    return Found(Node(node.payload, stat), Watch(WatchKind.NODE, path, stat))


def _exists(path: str, database: Database) -> Found:
    check_path(path)
    node = database.find(path)
    stat = None if node is None else node.stat()
    return Found(stat, Watch(WatchKind.NODE, path, stat))


def _children(path: str, database: Database) -> Found:
    stat = _find(path, database).stat()
    return Found(database.children(path), Watch(WatchKind.CHILDREN, path, stat))


def _find(path: str, database: Database) -> Znode:
    check_path(path)
    node = database.find(path)
    if node is None:
        raise NoNode(path)
    return node
