"""What the tests of this folder share: sessions at a store, a recorder of events, other processes."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from odradek.coordination.store import EventType, SessionState, Store, WatchEvent
from odradek.coordination.urls import open_store
from odradek.testing.memory_store import MemoryEnsemble

PEER_SCRIPT = Path(__file__).with_name("peer.py")


class Sessions(ABC):
    """Opens sessions at one empty store, and closes them after the test."""

    url = ""
    # What a hung process is granted, and how long the store may take to notice a killed one.
    session_timeout_ms = 1500
    notices_death_within_s = 1.0

    def __init__(self) -> None:
        self._opened: list[Store] = []
        self._peers: list[Peer] = []

    async def open(self) -> Store:
        store = await self._open()
        self._opened.append(store)
        return store

    async def peer(self) -> Peer:
        """A session in a process of its own."""
        peer = await Peer.start(self.url, self.session_timeout_ms)
        self._peers.append(peer)
        return peer

    async def close(self) -> None:
        for peer in self._peers:
            await peer.kill()
        for store in self._opened:
            await store.close()

    @abstractmethod
    async def _open(self) -> Store: ...


class MemorySessions(Sessions):
    def __init__(self) -> None:
        super().__init__()
        self._ensemble = MemoryEnsemble()

    async def _open(self) -> Store:
        return self._ensemble.open_session()


class SqliteSessions(Sessions):
    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.path = directory / "store.db"
        self.url = f"sqlite:{self.path}"

    async def _open(self) -> Store:
        return await open_store(self.url, session_timeout_ms=self.session_timeout_ms)


class ZooKeeperSessions(Sessions):
    session_timeout_ms = 4000  # the least that a server with a tick of 2 s grants
    notices_death_within_s = 12.0
    connection_timeout_ms = 30_000  # a server on a busy machine may begin its first session late

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    async def _open(self) -> Store:
        return await open_store(
            self.url,
            session_timeout_ms=self.session_timeout_ms,
            connection_timeout_ms=self.connection_timeout_ms,
        )


class Recorder:
    """A watcher that keeps its events."""

    def __init__(self) -> None:
        self.events: list[WatchEvent] = []

    def __call__(self, event: WatchEvent) -> None:
        self.events.append(event)

    async def next(self) -> WatchEvent:
        await eventually(lambda: bool(self.events))
        return self.events.pop(0)

    async def expect(self, event_type: EventType, path: str) -> None:
        assert await self.next() == WatchEvent(event_type, path)


class StateRecorder:
    """A session listener that keeps its calls."""

    def __init__(self, store: Store) -> None:
        self.states: list[SessionState] = []
        store.add_listener(self.states.append)


async def eventually(is_true: Callable[[], bool], within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.002)


class Peer:
    """A session in another process (peer.py), driven by lines of JSON."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, url: str, session_timeout_ms: int) -> Peer:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            PEER_SCRIPT,
            url,
            str(session_timeout_ms),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        peer = cls(process)
        assert await peer.answer() == "ready"
        return peer

    async def ask(self, *command: object) -> Any:
        self.send(*command)
        return await self.answer()

    def send(self, *command: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command).encode() + b"\n")

    async def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(await self.process.stdout.readline())

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
