"""What every store promises of nodes, versions, transactions and sessions: memory, SQLite, real ZooKeeper."""

from __future__ import annotations

import asyncio
import time

import pytest

from coordination.sessions import Recorder, Sessions
from odradek.coordination.errors import (
    BadVersion,
    InvalidPath,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    OperationRefused,
    StoreClosed,
)
from odradek.coordination.store import (
    Check,
    Create,
    Delete,
    EventType,
    Node,
    NodeStat,
    SessionState,
    SetData,
    Store,
)


async def test_a_created_node_is_read_back_with_its_facts(sessions: Sessions) -> None:
    store = await sessions.open()

    created = await store.create("/a", b"one")

    node = await store.get("/a")
    assert created == ("/a", node.stat)
    assert node.payload == b"one"
    stat = node.stat
    assert stat.version == stat.cversion == stat.num_children == stat.ephemeral_owner == 0
    assert stat.data_length == 3
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    assert stat.ctime_ms == stat.mtime_ms
    assert abs(stat.ctime_ms - time.time() * 1000) < 60_000


@pytest.mark.parametrize("payload", [b"", b"\0\xff" * 10, b"x" * 500_000], ids=["empty", "binary", "large"])
async def test_any_payload_is_kept(sessions: Sessions, payload: bytes) -> None:
    store = await sessions.open()
    await store.create("/a", payload)
    assert (await store.get("/a")).payload == payload


async def test_a_node_is_created_once(sessions: Sessions) -> None:
    first, second = await sessions.open(), await sessions.open()
    await first.create("/a", b"first")

    with pytest.raises(NodeExists) as refusal:
        await second.create("/a", b"second")

    assert refusal.value.path == "/a"
    assert (await second.get("/a")).payload == b"first"


async def test_of_many_creators_one_wins(sessions: Sessions) -> None:
    stores = [await sessions.open() for _ in range(4)]

    results = await asyncio.gather(
        *[store.create("/controller", ephemeral=True) for store in stores], return_exceptions=True
    )

    assert sum(isinstance(result, NodeExists) for result in results) == 3


async def test_a_node_needs_its_parent(sessions: Sessions) -> None:
    store = await sessions.open()
    with pytest.raises(NoNode):
        await store.create("/a/b")


async def test_an_ephemeral_node_has_an_owner_and_no_children(sessions: Sessions) -> None:
    store = await sessions.open()

    created = await store.create("/a", ephemeral=True)

    assert created.stat.ephemeral_owner == store.session_id != 0
    with pytest.raises(NoChildrenForEphemerals):
        await store.create("/a/b")


async def test_a_path_that_no_node_can_have_is_refused(sessions: Sessions) -> None:
    store = await sessions.open()
    for path in ("", "a", "/a/", "//a", "/a//b", "/./a", "/a/..", "/a\0", "/a\x1f"):
        for refused in (
            store.create(path),
            store.get(path),
            store.exists(path),
            store.children(path),
            store.set(path, b""),
            store.delete(path),
            store.multi([Check(path)]),
        ):
            with pytest.raises(InvalidPath):
                await refused


async def test_the_root_is_there_and_stays(sessions: Sessions) -> None:
    store = await sessions.open()
    assert await store.children("/") == []
    with pytest.raises(NodeExists):
        await store.create("/")
    with pytest.raises(OperationRefused):
        await store.delete("/")


async def test_each_write_raises_the_version(sessions: Sessions) -> None:
    store = await sessions.open()
    created = (await store.create("/a", b"0")).stat

    changed = await store.set("/a", b"1", version=0)

    assert await store.get("/a") == Node(b"1", changed)
    assert changed.version == 1
    assert changed.czxid == created.czxid
    assert changed.mzxid > created.mzxid
    assert changed.pzxid == created.pzxid


async def test_a_write_for_another_version_changes_nothing(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/a", b"0")
    await store.set("/a", b"1")

    for refused in (store.set("/a", b"2", version=0), store.delete("/a", version=0)):
        with pytest.raises(BadVersion):
            await refused

    assert (await store.get("/a")).payload == b"1"


async def test_what_is_not_there_cannot_be_changed(sessions: Sessions) -> None:
    store = await sessions.open()
    for refused in (store.get("/a"), store.children("/a"), store.set("/a", b""), store.delete("/a")):
        with pytest.raises(NoNode) as refusal:
            await refused
        assert refusal.value.path == "/a"
    assert await store.exists("/a") is None


async def test_a_node_with_children_stays(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.ensure_path("/a/b")

    with pytest.raises(NotEmpty):
        await store.delete("/a")

    await store.delete("/a/b")
    await store.delete("/a")
    assert await store.exists("/a") is None


async def test_a_recreated_node_is_another_one(sessions: Sessions) -> None:
    store = await sessions.open()
    old = (await store.create("/a")).stat
    await store.set("/a", b"1")
    await store.delete("/a")

    new = (await store.create("/a")).stat

    assert new.czxid > old.czxid
    assert new.version == 0


async def test_children_are_names_in_order(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/a")
    for name in ("z", "b", "b1", "ä", "b/c"):
        await store.create(f"/a/{name}")

    assert await store.children("/a") == ["b", "b1", "z", "ä"]
    assert await store.children("/a/b") == ["c"]
    assert "a" in await store.children("/")


async def test_births_and_deaths_of_children_are_counted(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/a")
    first = await store.create("/a/b")
    assert await facts(store, "/a") == (1, 1, first.stat.czxid)

    await store.create("/a/c")
    await store.delete("/a/b")

    stat = await store.exists("/a")
    assert stat is not None
    assert (stat.cversion, stat.num_children, stat.version) == (3, 1, 0)
    assert stat.pzxid > first.stat.czxid


async def facts(store: Store, path: str) -> tuple[int, int, int]:
    stat = await store.exists(path)
    assert stat is not None
    return stat.cversion, stat.num_children, stat.pzxid


async def test_sequential_names_rise_and_never_come_twice(sessions: Sessions) -> None:
    one, two = await sessions.open(), await sessions.open()
    await one.create("/q")

    first = await one.create("/q/n_", sequential=True)
    await one.delete(first.path)
    second = await two.create("/q/n_", sequential=True)
    third = await one.create("/q/", sequential=True)

    assert first.path == "/q/n_0000000000"
    assert second.path == "/q/n_0000000001"
    assert third.path == "/q/0000000002"


async def test_zxids_rise_over_all_sessions(sessions: Sessions) -> None:
    one, two = await sessions.open(), await sessions.open()
    zxids = []
    for index in range(10):
        store = one if index % 2 else two
        zxids.append((await store.create(f"/n{index}")).stat.czxid)
        zxids.append((await store.set(f"/n{index}", b"x")).mzxid)
    assert zxids == sorted(set(zxids))


async def test_a_multi_is_one_transaction(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.create("/epoch", b"1")

    results = await store.multi(
        [
            Check("/epoch", 0),
            Create("/t"),
            Create("/t/p"),
            SetData("/t/p", b"state", 0),
            SetData("/epoch", b"2", 0),
            Create("/t/n", sequential=True),
            Delete("/t/n0000000001"),
        ]
    )

    check, t, p, state, epoch, n, deleted = results
    assert (check, t, p, n, deleted) == (None, "/t", "/t/p", "/t/n0000000001", None)
    assert isinstance(state, NodeStat)
    assert isinstance(epoch, NodeStat)
    assert state == await store.exists("/t/p")
    assert state.czxid == state.mzxid == epoch.mzxid
    assert await store.children("/t") == ["p"]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (Check("/epoch", 7), BadVersion),
        (Check("/nowhere"), NoNode),
        (Create("/epoch"), NodeExists),
        (Create("/nowhere/x"), NoNode),
        (SetData("/epoch", b"", 7), BadVersion),
        (Delete("/new"), NotEmpty),
    ],
)
async def test_a_multi_happens_wholly_or_not_at_all(
    sessions: Sessions, refused: Check | Create | SetData | Delete, error: type[OperationRefused]
) -> None:
    store = await sessions.open()
    before = (await store.create("/epoch", b"1")).stat

    with pytest.raises(error) as refusal:
        await store.multi(
            [Create("/new"), Create("/new/child"), SetData("/epoch", b"2"), refused, Create("/late")]
        )

    assert refusal.value.operation_index == 3
    assert refusal.value.path == refused.path
    assert await store.get("/epoch") == Node(b"1", before)
    assert await store.children("/") == ["epoch"]


async def test_a_failed_multi_wakes_no_watch(sessions: Sessions) -> None:
    store = await sessions.open()
    recorder = Recorder()
    await store.exists("/a", recorder)
    with pytest.raises(NoNode):
        await store.multi([Create("/a"), Check("/nowhere")])

    await store.create("/a")

    await recorder.expect(EventType.CREATED, "/a")
    assert recorder.events == []


async def test_a_check_of_the_epoch_fences_a_zombie(sessions: Sessions) -> None:
    zombie, new = await sessions.open(), await sessions.open()
    await zombie.create("/controller_epoch", b"1")
    await zombie.create("/state", b"of the old")
    await new.set("/controller_epoch", b"2", version=0)

    with pytest.raises(BadVersion):
        await zombie.multi([Check("/controller_epoch", 0), SetData("/state", b"of the zombie")])

    assert (await new.get("/state")).payload == b"of the old"


async def test_no_update_is_lost_between_sessions(sessions: Sessions) -> None:
    stores = [await sessions.open() for _ in range(3)]
    await stores[0].create("/count", b"0")

    async def count_up(store: Store) -> None:
        done = 0
        while done < 10:
            payload, stat = await store.get("/count")
            try:
                await store.set("/count", str(int(payload) + 1).encode(), stat.version)
            except BadVersion:
                continue
            done += 1

    await asyncio.gather(*[count_up(store) for store in stores])

    assert (await stores[0].get("/count")).payload == b"30"


async def test_calls_made_together_happen_in_order(sessions: Sessions) -> None:
    store = await sessions.open()
    await asyncio.gather(
        store.create("/a"), store.create("/a/b"), store.set("/a/b", b"1"), store.set("/a/b", b"2")
    )
    assert (await store.get("/a/b")).payload == b"2"


async def test_ensure_path_makes_what_is_missing(sessions: Sessions) -> None:
    store, other = await sessions.open(), await sessions.open()
    await asyncio.gather(store.ensure_path("/a/b/c"), other.ensure_path("/a/b/d"), store.ensure_path("/a"))
    assert await store.children("/a/b") == ["c", "d"]


async def test_closing_a_session_takes_its_ephemerals_only(sessions: Sessions) -> None:
    leaving, staying = await sessions.open(), await sessions.open()
    recorder = Recorder()
    await leaving.create("/ids")
    await leaving.create("/ids/1", ephemeral=True)
    await leaving.create("/ids/0", ephemeral=True)
    await staying.create("/ids/2", ephemeral=True)
    await staying.get("/ids/1", recorder)

    await leaving.close()

    await recorder.expect(EventType.DELETED, "/ids/1")
    assert await staying.children("/ids") == ["2"]


async def test_a_closed_store_refuses_and_closes_twice(sessions: Sessions) -> None:
    store = await sessions.open()
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.get("/")


async def test_a_fresh_session_is_connected(sessions: Sessions) -> None:
    one, two = await sessions.open(), await sessions.open()
    assert one.state is two.state is SessionState.CONNECTED
    assert one.session_id != two.session_id
