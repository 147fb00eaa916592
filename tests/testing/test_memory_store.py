"""The memory store's handles for tests; what it shares with the others is in coordination/."""

from __future__ import annotations

import asyncio

import pytest

from odradek.coordination.errors import SessionExpired
from odradek.coordination.store import EventType, SessionState, WatchEvent
from odradek.testing.memory_store import MemoryEnsemble


def test_a_suspended_session_gets_no_events_and_reads_nothing_until_it_resumes() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble()
        store, other = ensemble.open_session(), ensemble.open_session()
        states: list[SessionState] = []
        events: list[WatchEvent] = []
        store.add_listener(states.append)
        await store.exists("/a", events.append)

        store.suspend()
        await other.create("/a")
        reading = asyncio.create_task(store.get("/a"))
        await asyncio.sleep(0.01)
        assert events == []
        assert not reading.done()
        store.resume()
        await reading

        assert events == [WatchEvent(EventType.CREATED, "/a")]
        assert states == [SessionState.SUSPENDED, SessionState.CONNECTED]

    asyncio.run(scenario())


def test_an_expired_session_loses_its_nodes_and_is_refused() -> None:
    async def scenario() -> None:
        ensemble = MemoryEnsemble(now_ms=lambda: 17)
        store, other = ensemble.open_session(), ensemble.open_session()
        created = await store.create("/mine", ephemeral=True)
        assert created.stat.ctime_ms == 17
        store.suspend()
        waiting = asyncio.create_task(store.get("/mine"))
        await asyncio.sleep(0.01)

        store.expire()

        with pytest.raises(SessionExpired):
            await waiting
        with pytest.raises(SessionExpired):
            await store.create("/mine")
        assert store.state is SessionState.EXPIRED
        assert await other.exists("/mine") is None

    asyncio.run(scenario())
