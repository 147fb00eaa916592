"""The store over a real ZooKeeper, when the connection breaks (through a proxy that the test cuts)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coordination.sessions import Recorder, StateRecorder, eventually
from odradek.coordination.errors import ConnectionLoss, SessionExpired, StoreUnavailable
from odradek.coordination.store import EventType, SessionState, Store
from odradek.coordination.urls import open_store
from odradek.coordination.zookeeper import ZooKeeperStore

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED
SESSION_TIMEOUT_MS = 4000
pytestmark = pytest.mark.java


class Proxy:
    """Passes bytes between the store and ZooKeeper; `cut` drops the connection and refuses new ones."""

    def __init__(self, servers: str) -> None:
        host, _, port = servers.partition(":")
        self._upstream = host, int(port)
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_cut = False
        self.swallows_answers = False

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        self._writers += [writer, up_writer]
        self._tasks += [
            asyncio.create_task(self._pump(reader, up_writer, is_answer=False)),
            asyncio.create_task(self._pump(up_reader, writer, is_answer=True)),
        ]

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool
    ) -> None:
        try:
            while chunk := await reader.read(65536):
                if not (is_answer and self.swallows_answers):
                    writer.write(chunk)
        except ConnectionError:
            pass
        writer.close()

    def cut(self) -> None:
        self._is_cut = True
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def restore(self) -> None:
        self._is_cut = self.swallows_answers = False

    async def close(self) -> None:
        self.cut()
        self._server.close()
        await asyncio.gather(*self._tasks)


class Line:
    """A store behind a proxy, and one that reaches ZooKeeper directly."""

    def __init__(self, proxy: Proxy, store: Store, direct: Store) -> None:
        self.proxy = proxy
        self.store = store
        self.direct = direct
        self.states = StateRecorder(store).states


@asynccontextmanager
async def a_line(servers: str, chroot: str) -> AsyncIterator[Line]:
    proxy = Proxy(servers)
    await proxy.start()
    url = f"zookeeper://127.0.0.1:{proxy.port}/line/{chroot}"
    store = await open_store(url, session_timeout_ms=SESSION_TIMEOUT_MS, connection_timeout_ms=30_000)
    direct = await open_store(f"zookeeper://{servers}/line/{chroot}")
    try:
        yield Line(proxy, store, direct)
    finally:
        proxy.restore()
        await store.close()
        await direct.close()
        await proxy.close()


async def test_a_short_break_suspends_and_keeps_the_session(zookeeper_servers: str) -> None:
    async with a_line(zookeeper_servers, "short") as line:
        await line.store.create("/mine", ephemeral=True)

        line.proxy.cut()
        await eventually(lambda: line.states == [SUSPENDED])
        line.proxy.restore()
        await eventually(lambda: line.states == [SUSPENDED, CONNECTED])

        node = await line.store.get("/mine")
        assert node.stat.ephemeral_owner == line.store.session_id


async def test_watches_survive_a_break_and_report_what_was_missed(zookeeper_servers: str) -> None:
    async with a_line(zookeeper_servers, "missed") as line:
        for name in ("changed", "deleted", "parent", "same"):
            await line.direct.create(f"/{name}")
        recorder = Recorder()
        for name in ("changed", "deleted", "same", "new", "never"):
            await line.store.exists(f"/{name}", recorder)
        await line.store.children("/parent", recorder)

        line.proxy.cut()
        await eventually(lambda: line.states == [SUSPENDED])
        await line.direct.set("/changed", b"1")
        await line.direct.delete("/deleted")
        await line.direct.create("/new")
        await line.direct.create("/parent/child")
        assert recorder.events == []
        line.proxy.restore()
        read = await line.store.get("/changed")

        assert read.payload == b"1"
        assert {(event.type, event.path) for event in recorder.events} == {
            (EventType.DATA_CHANGED, "/changed"),
            (EventType.DELETED, "/deleted"),
            (EventType.CREATED, "/new"),
            (EventType.CHILDREN_CHANGED, "/parent"),
        }
        recorder.events.clear()
        await line.direct.set("/same", b"1")
        await recorder.expect(EventType.DATA_CHANGED, "/same")


async def test_a_write_whose_answer_is_lost_is_reported_as_unsure(zookeeper_servers: str) -> None:
    async with a_line(zookeeper_servers, "unsure") as line:
        line.proxy.swallows_answers = True
        writing = asyncio.create_task(line.store.create("/a"))
        while await line.direct.exists("/a") is None:
            await asyncio.sleep(0.01)

        line.proxy.cut()

        with pytest.raises(ConnectionLoss):
            await writing


async def test_the_last_contact_is_when_the_server_responded_and_not_when_it_was_asked(
    zookeeper_servers: str,
) -> None:
    async with a_line(zookeeper_servers, "contact") as line:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await line.store.exists("/")
        assert began_s <= line.store.last_contact_s <= loop.time()

        line.proxy.swallows_answers = True
        heard_s = line.store.last_contact_s
        asking = [asyncio.create_task(line.store.exists("/"))]
        while loop.time() < began_s + 3:  # longer than kazoo waits for the answer to a ping
            await asyncio.sleep(0.2)
            asking.append(asyncio.create_task(line.store.exists("/")))
        assert line.states == []
        assert line.store.last_contact_s == heard_s

        line.proxy.cut()
        await eventually(lambda: line.states == [SUSPENDED])
        assert line.store.last_contact_s == heard_s
        line.proxy.restore()
        await asyncio.gather(*asking)
        assert line.store.last_contact_s > heard_s


async def test_a_read_waits_for_the_connection(zookeeper_servers: str) -> None:
    async with a_line(zookeeper_servers, "waits") as line:
        await line.direct.create("/a", b"1")
        line.proxy.cut()
        await eventually(lambda: line.states == [SUSPENDED])

        reading = asyncio.create_task(line.store.get("/a"))
        await asyncio.sleep(0.1)
        assert not reading.done()
        line.proxy.restore()

        assert (await reading).payload == b"1"


@pytest.mark.slow
async def test_a_long_break_expires_the_session(zookeeper_servers: str) -> None:
    async with a_line(zookeeper_servers, "long") as line:
        await line.store.create("/mine", ephemeral=True)
        gone = Recorder()
        await line.direct.get("/mine", gone)

        line.proxy.cut()
        await eventually(lambda: bool(gone.events), within_s=20)
        assert line.states == [SUSPENDED]
        reading = asyncio.create_task(line.store.get("/mine"))
        line.proxy.restore()

        await eventually(lambda: line.states == [SUSPENDED, EXPIRED], within_s=20)
        with pytest.raises(SessionExpired):
            await reading
        with pytest.raises(SessionExpired):
            await line.store.create("/mine", ephemeral=True)


async def test_no_zookeeper_is_reported_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"no ZooKeeper answered at 127\.0\.0\.1:1 within 300 ms"):
        await ZooKeeperStore.open("127.0.0.1:1", connection_timeout_ms=300)
    assert time.monotonic() - began < 15


async def test_a_chroot_is_created_and_kept_apart(zookeeper_servers: str) -> None:
    inside = await open_store(f"zookeeper://{zookeeper_servers}/apart/a/b")
    outside = await open_store(f"zookeeper://{zookeeper_servers}")
    created = await inside.create("/n", sequential=True)

    assert created.path == "/n0000000000"
    assert await outside.children("/apart/a/b") == ["n0000000000"]
    await inside.close()
    await outside.close()
