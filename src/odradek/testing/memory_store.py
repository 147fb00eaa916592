"""The shared store in memory: any number of sessions, which a test can suspend and expire."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context

from odradek.coordination.errors import NoNode, SessionExpired, StoreClosed, StoreError
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
    WatchEvent,
)
from odradek.coordination.watches import Watch, WatchDelivery, Watches, WatchKind
from odradek.coordination.znodes import ROOT, Draft, Znode, check_path, parent_of


def _wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class MemoryEnsemble:
    """The nodes that all sessions of a test share. Lives on one event loop."""

    def __init__(self, now_ms: Callable[[], int] = _wall_clock_ms) -> None:
        self.nodes = {ROOT: Znode(b"", 0, 0, 0, 0, 0)}
        self.zxid = 0
        self._now_ms = now_ms
        self._sessions: list[MemoryStore] = []

    def find(self, path: str) -> Znode | None:
        """The node at this path."""
        return self.nodes.get(path)

    def open_session(self) -> MemoryStore:
        """A new session."""
        self.zxid += 1
        store = MemoryStore(self, self.zxid)
        self._sessions.append(store)
        return store

    def draft(self, session_id: int) -> Draft:
        """A transaction to be filled, then committed."""
        return Draft(self, zxid=self.zxid + 1, now_ms=self._now_ms(), session_id=session_id)

    def commit(self, draft: Draft) -> None:
        """Apply the draft, and fire the watches of every session."""
        self.zxid = draft.zxid
        for path, node in draft.changed.items():
            if node is None:
                self.nodes.pop(path, None)  # a node may be created and deleted in one transaction
            else:
                self.nodes[path] = node
        for session in self._sessions:
            session.notice(draft.events)

    def end_session(self, store: MemoryStore) -> None:
        """Remove the ephemeral nodes of a session."""
        self._sessions.remove(store)
        draft = self.draft(store.session_id)
        draft.remove_all(
            path for path, node in self.nodes.items() if node.ephemeral_owner == store.session_id
        )
        self.commit(draft)

    def drop_session(self, store: MemoryStore) -> None:
        """The process of a session has died: the session ends, and nobody there is notified."""
        if store in self._sessions:
            self.end_session(store)


class MemoryStore(Store):
    """One session at a `MemoryEnsemble`; `suspend`, `resume` and `expire` are for tests."""

    def __init__(self, ensemble: MemoryEnsemble, session_id: int) -> None:
        self._ensemble = ensemble
        self._session_id = session_id
        self._loop = asyncio.get_running_loop()
        self._state = SessionState.CONNECTED
        self._listeners: list[SessionListener] = []
        self._watches = Watches()
        self._deliveries: deque[WatchDelivery] = deque()
        self._is_connected = asyncio.Event()
        self._is_connected.set()
        self._ended: StoreError | None = None
        self._contact_lost_s: float | None = None
        # In a simulation a session belongs to one process, whichever process calls it.
        self._context = copy_context()

    @property
    def session_id(self) -> int:
        """The zxid with which the session began."""
        return self._session_id

    @property
    def state(self) -> SessionState:
        """As the test set it last."""
        return self._state

    @property
    def last_contact_s(self) -> float:
        """Now, or when it was suspended."""
        return self._loop.time() if self._contact_lost_s is None else self._contact_lost_s

    @property
    def crash_detection_ms(self) -> int:
        """As the embedded store has it."""
        return 1000

    def add_listener(self, listener: SessionListener) -> None:
        """Call the listener after every later change of `state`."""
        self._listeners.append(listener)

    async def create(
        self, path: str, payload: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> Created:
        """Make one node."""
        (created_path,) = await self.multi([Create(path, payload, ephemeral, sequential)])
        assert isinstance(created_path, str)
        return Created(created_path, self._ensemble.nodes[created_path].stat())

    async def get(self, path: str, watcher: Watcher | None = None) -> Node:
        """Payload and facts of a node."""
        await self._yield_to_loop()
        node = self._find(path)
        self._watch(WatchKind.NODE, path, node.stat(), watcher)
        return Node(node.payload, node.stat())

    async def exists(self, path: str, watcher: Watcher | None = None) -> NodeStat | None:
        """Facts of a node, or None."""
        await self._yield_to_loop()
        check_path(path)
        node = self._ensemble.find(path)
        stat = None if node is None else node.stat()
        self._watch(WatchKind.NODE, path, stat, watcher)
        return stat

    async def children(self, path: str, watcher: Watcher | None = None) -> list[str]:
        """Names of the children, in order."""
        await self._yield_to_loop()
        self._watch(WatchKind.CHILDREN, path, self._find(path).stat(), watcher)
        others = self._ensemble.nodes.keys() - {ROOT}
        return sorted(child.rpartition("/")[2] for child in others if parent_of(child) == path)

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        """All in one transaction, or nothing."""
        await self._yield_to_loop()
        draft = self._ensemble.draft(self._session_id)
        results = draft.apply_all(operations)
        self._ensemble.commit(draft)
        self._deliver()
        return results

    async def close(self) -> None:
        """End the session."""
        if self._ended is None:
            self._end(StoreClosed("the store was closed"))

    # Called by tests

    def lose_contact(self) -> None:
        """The store no longer responds, and nobody has noticed: calls and watches wait."""
        self._is_connected.clear()
        if self._contact_lost_s is None:
            self._contact_lost_s = self._loop.time()

    def suspend(self) -> None:
        """Suspend the connection: calls and watches wait."""
        self.lose_contact()
        self._change(SessionState.SUSPENDED)

    def resume(self) -> None:
        """Restore the connection."""
        self._is_connected.set()
        self._contact_lost_s = None
        self._change(SessionState.CONNECTED)
        self._loop.call_soon(self._deliver, context=self._context.copy())

    def expire(self) -> None:
        """Let the session time out; its owner is notified in its own context."""
        self._end(SessionExpired("the test expired this session"))
        self._context.run(self._change, SessionState.EXPIRED)

    def notice(self, events: Sequence[WatchEvent]) -> None:
        """Called by the ensemble after each transaction."""
        self._deliveries += self._watches.trigger(events)
        if self._deliveries and self._is_connected.is_set():
            self._loop.call_soon(self._deliver, context=self._context.copy())

    async def _yield_to_loop(self) -> None:
        """Let others run, wait for the connection, deliver watch events before anything newer is read."""
        await asyncio.sleep(0)
        if self._ended is None:
            await self._is_connected.wait()
        if self._ended is not None:
            raise self._ended
        self._deliver()

    def _deliver(self) -> None:
        while self._deliveries and self._is_connected.is_set():
            watcher, event = self._deliveries.popleft()
            watcher(event)

    def _find(self, path: str) -> Znode:
        check_path(path)
        node = self._ensemble.find(path)
        if node is None:
            raise NoNode(path)
        return node

    def _watch(self, kind: WatchKind, path: str, known: NodeStat | None, watcher: Watcher | None) -> None:
        if watcher is not None:
            self._watches.add(Watch(kind, path, known), watcher)

    def _end(self, reason: StoreError) -> None:
        self._ended = reason
        self._watches.clear()
        self._deliveries.clear()
        self._ensemble.drop_session(self)
        self._is_connected.set()

    def _change(self, state: SessionState) -> None:
        if state is not self._state:
            self._state = state
            for listener in list(self._listeners):
                listener(state)
