"""What every store promises of watches: memory, SQLite, real ZooKeeper."""

from __future__ import annotations

import asyncio

import pytest

from coordination.sessions import Recorder, Sessions, eventually
from odradek.coordination.errors import NoNode
from odradek.coordination.store import Create, Delete, EventType, SetData, Store, WatchEvent


@pytest.fixture(params=["own", "foreign"])
def writer_is(request: pytest.FixtureRequest) -> str:
    """Whether the watched change is made by the watching session or by another."""
    kind: str = request.param
    return kind


async def two(sessions: Sessions, writer_is: str) -> tuple[Store, Store]:
    watcher = await sessions.open()
    return watcher, (watcher if writer_is == "own" else await sessions.open())


async def test_get_watches_the_payload_once(sessions: Sessions, writer_is: str) -> None:
    store, writer = await two(sessions, writer_is)
    await writer.create("/a", b"0")
    recorder = Recorder()
    await store.get("/a", recorder)

    await writer.set("/a", b"1")
    await recorder.expect(EventType.DATA_CHANGED, "/a")
    await writer.set("/a", b"2")
    await store.get("/a")

    assert recorder.events == []


async def test_get_watches_the_end(sessions: Sessions, writer_is: str) -> None:
    store, writer = await two(sessions, writer_is)
    await writer.create("/a")
    recorder = Recorder()
    await store.get("/a", recorder)

    await writer.delete("/a")

    await recorder.expect(EventType.DELETED, "/a")


async def test_exists_watches_the_birth(sessions: Sessions, writer_is: str) -> None:
    store, writer = await two(sessions, writer_is)
    recorder = Recorder()
    await store.exists("/a", recorder)

    await writer.create("/a")

    await recorder.expect(EventType.CREATED, "/a")


async def test_children_watches_births_and_deaths_of_children_only(
    sessions: Sessions, writer_is: str
) -> None:
    store, writer = await two(sessions, writer_is)
    await writer.ensure_path("/a/b")
    recorder = Recorder()
    await store.children("/a", recorder)

    await writer.set("/a", b"1")
    await writer.set("/a/b", b"1")
    await writer.create("/a/b/c")
    await store.get("/a")
    assert recorder.events == []

    await writer.create("/a/d")
    await recorder.expect(EventType.CHILDREN_CHANGED, "/a")
    await store.children("/a", recorder)
    await writer.delete("/a/d")
    await recorder.expect(EventType.CHILDREN_CHANGED, "/a")


async def test_children_watches_the_end_of_the_node(sessions: Sessions, writer_is: str) -> None:
    store, writer = await two(sessions, writer_is)
    await writer.create("/a")
    recorder = Recorder()
    await store.children("/a", recorder)

    await writer.delete("/a")

    await recorder.expect(EventType.DELETED, "/a")


async def test_a_refused_read_leaves_no_watch(sessions: Sessions) -> None:
    store = await sessions.open()
    recorder = Recorder()
    with pytest.raises(NoNode):
        await store.get("/a", recorder)
    with pytest.raises(NoNode):
        await store.children("/a", recorder)

    await store.create("/a")
    await store.create("/a/b")
    await store.exists("/a")

    assert recorder.events == []


async def test_one_watcher_fires_once_and_two_fire_both(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/a")
    one, other = Recorder(), Recorder()
    await store.get("/a", one)
    await store.exists("/a", one)
    await store.get("/a", other)

    await store.set("/a", b"1")

    await other.expect(EventType.DATA_CHANGED, "/a")
    assert one.events == [WatchEvent(EventType.DATA_CHANGED, "/a")]


async def test_a_multi_wakes_each_watch_in_order(sessions: Sessions, writer_is: str) -> None:
    store, writer = await two(sessions, writer_is)
    await writer.create("/a")
    await writer.create("/b")
    recorder = Recorder()
    await store.children("/b", recorder)
    await store.exists("/a", recorder)
    await store.exists("/b/c", recorder)

    await writer.multi([SetData("/a", b"1"), Create("/b/c"), Delete("/a")])

    await eventually(lambda: len(recorder.events) == 3)
    assert recorder.events == [
        WatchEvent(EventType.DATA_CHANGED, "/a"),
        WatchEvent(EventType.CREATED, "/b/c"),
        WatchEvent(EventType.CHILDREN_CHANGED, "/b"),
    ]


async def test_the_event_comes_before_the_new_state(sessions: Sessions, writer_is: str) -> None:
    """A reader of version n + 1 was notified before of the end of version n."""
    store, writer = await two(sessions, writer_is)
    await writer.create("/a")

    async def write() -> None:
        for version in range(40):
            await writer.set("/a", b"x", version)
            await asyncio.sleep(0.001)

    writing = asyncio.create_task(write())
    watched = -1
    while watched < 40:
        recorder = Recorder()
        watched = (await store.get("/a", recorder)).stat.version
        while watched < 40:
            version = (await store.get("/a")).stat.version
            if version > watched:
                assert len(recorder.events) == 1
                break
            assert len(recorder.events) <= 1
            await asyncio.sleep(0)
    await writing


async def test_no_change_is_lost_between_read_and_watch(sessions: Sessions, writer_is: str) -> None:
    """A client that reads and watches, and reads again when notified, ends up knowing the last state."""
    store, writer = await two(sessions, writer_is)
    await writer.create("/q")
    recorder = Recorder()

    async def write() -> None:
        for _ in range(40):
            await writer.create("/q/n", sequential=True)

    writing = asyncio.create_task(write())
    while len(await store.children("/q", recorder)) < 40:
        await recorder.next()
    await writing


async def test_a_watch_of_a_closed_session_is_silent(sessions: Sessions) -> None:
    store, writer = await sessions.open(), await sessions.open()
    recorder = Recorder()
    await store.exists("/a", recorder)
    await store.close()

    await writer.create("/a")
    await asyncio.sleep(0.05)

    assert recorder.events == []


async def test_a_watch_set_by_a_watcher_fires_at_the_next_change(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/a")
    versions: list[int] = []
    reads: list[asyncio.Task[None]] = []

    async def read_again() -> None:
        versions.append((await store.get("/a", again)).stat.version)

    def again(_: WatchEvent) -> None:
        reads.append(asyncio.create_task(read_again()))

    await read_again()
    for index in range(5):
        await store.set("/a", str(index).encode())
        await eventually(lambda expected=index + 1: versions[-1] == expected)

    assert versions == [0, 1, 2, 3, 4, 5]
