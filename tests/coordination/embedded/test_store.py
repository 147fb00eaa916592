"""The embedded store alone: its file, its session, its faults."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import uvloop

from coordination.sessions import Recorder, SqliteSessions, StateRecorder, eventually
from odradek.coordination.embedded import database as sqlite_database
from odradek.coordination.embedded import sessions, worker
from odradek.coordination.embedded.database import Database
from odradek.coordination.embedded.store import SqliteStore
from odradek.coordination.embedded.worker import Found, Read
from odradek.coordination.errors import (
    SessionExpired,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreNotWritable,
    StoreUnavailable,
)
from odradek.coordination.store import Create, Delete, EventType, SessionState, SetData
from odradek.coordination.urls import open_store
from odradek.coordination.watches import Watch, WatchKind
from odradek.coordination.znodes import Draft

CONNECTED, SUSPENDED, EXPIRED = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.EXPIRED


async def test_what_was_written_is_there_after_a_restart(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    await store.create("/a", b"1")
    await store.create("/mine", ephemeral=True)
    node = await store.get("/a")
    await store.close()

    again = await sqlite_sessions.open()

    assert await again.get("/a") == node
    assert await again.children("/") == ["a"]
    assert (await again.create("/b")).stat.czxid > node.stat.mzxid


@pytest.mark.parametrize(("is_synced", "synchronous"), [(True, 2), (False, 0)])
def test_a_commit_waits_for_the_disk_unless_disabled(
    tmp_path: Path, is_synced: bool, synchronous: int
) -> None:
    database = Database(tmp_path / "store.db", busy_timeout_ms=1000, is_synced=is_synced)
    assert database.connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    database.close()


async def test_opening_takes_milliseconds(sqlite_sessions: SqliteSessions) -> None:
    await (await sqlite_sessions.open()).close()
    took_s = []
    for _ in range(5):
        began = time.perf_counter()
        store = await sqlite_sessions.open()
        took_s.append(time.perf_counter() - began)
        await store.close()
    assert min(took_s) < 0.05


async def test_only_its_owner_can_read_the_file(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    await store.create("/secret")
    for path in sqlite_sessions.path.parent.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


async def test_many_may_open_a_new_file_at_once(sqlite_sessions: SqliteSessions) -> None:
    stores = await asyncio.gather(*[sqlite_sessions.open() for _ in range(8)])
    assert len({store.session_id for store in stores}) == 8


async def test_a_closed_session_leaves_no_file(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    directory = sqlite_sessions.path.with_name("store.db-sessions")
    assert len(os.listdir(directory)) == 2
    await store.close()
    assert os.listdir(directory) == []


async def test_a_removed_file_ends_the_session(sqlite_sessions: SqliteSessions) -> None:
    """Else we would go on alone while a newcomer founds another cluster at the same path."""
    store = await sqlite_sessions.open()
    states = StateRecorder(store)

    sqlite_sessions.path.unlink()

    await eventually(lambda: states.states == [EXPIRED])
    with pytest.raises(SessionExpired, match="removed or replaced"):
        await store.get("/")


async def test_another_process_is_woken_by_a_commit(
    sqlite_sessions: SqliteSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks at the database in between."""
    monkeypatch.setattr(worker, "LOOK_INTERVAL_MS", 3_600_000)
    monkeypatch.setattr(worker, "LOOK_INTERVAL_ALONE_MS", 3_600_000)
    sqlite_sessions.session_timeout_ms = 36_000_000
    store = await sqlite_sessions.open()
    watched = Recorder()
    await store.exists("/new", watched)

    newcomer = await sqlite_sessions.peer()
    await newcomer.ask("create", "/new")
    await watched.expect(EventType.CREATED, "/new")

    await store.get("/new", watched)
    await newcomer.ask("set", "/new", "1")
    await watched.expect(EventType.DATA_CHANGED, "/new")


async def test_the_exit_of_another_process_is_noticed_within_milliseconds(
    sqlite_sessions: SqliteSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LOOK_INTERVAL_MS", 3_600_000)
    sqlite_sessions.session_timeout_ms = 36_000_000
    store = await sqlite_sessions.open()
    took_s = []
    for _ in range(3):
        peer = await sqlite_sessions.peer()
        await peer.ask("create_ephemeral", "/mine")
        watched = Recorder()
        await store.exists("/mine", watched)
        killed_at = time.perf_counter()
        peer.process.kill()
        await watched.expect(EventType.DELETED, "/mine")
        took_s.append(time.perf_counter() - killed_at)
    assert min(took_s) < 0.1


async def test_a_commit_whose_wake_up_was_lost_is_seen_all_the_same(
    sqlite_sessions: SqliteSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions.Peers, "wake", lambda _: None)
    store, other = await sqlite_sessions.open(), await sqlite_sessions.open()
    watched = Recorder()
    await store.exists("/new", watched)
    await other.create("/new")
    await watched.expect(EventType.CREATED, "/new")


async def test_a_loop_that_hangs_is_in_doubt_and_then_sure_again(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    states = StateRecorder(store)

    time.sleep(0.8)
    await eventually(lambda: len(states.states) >= 2)

    assert states.states[:2] == [SUSPENDED, CONNECTED]


@pytest.mark.slow
async def test_a_loop_that_hangs_too_long_is_expired_by_the_others(sqlite_sessions: SqliteSessions) -> None:
    store, peer = await sqlite_sessions.open(), await sqlite_sessions.peer()
    states = StateRecorder(store)
    await store.create("/mine", ephemeral=True)

    time.sleep(3)

    assert await peer.ask("get", "/mine") == "NoNode"
    await eventually(lambda: bool(states.states) and states.states[-1] is EXPIRED)
    with pytest.raises(SessionExpired):
        await store.create("/late")


async def test_expiry_fails_what_is_under_way(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    with sqlite3.connect(sqlite_sessions.path, isolation_level=None) as foreign:
        foreign.execute("DELETE FROM session")
    foreign.close()
    results = await asyncio.gather(*[store.set("/", b"x") for _ in range(5)], return_exceptions=True)
    assert all(isinstance(result, SessionExpired) for result in results)
    assert store.state is EXPIRED


async def test_a_locked_file_is_reported_and_recovers(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    holder = sqlite3.connect(sqlite_sessions.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreBusy, match="locked"):
        await store.create("/a")
    assert await store.exists("/a") is None

    holder.execute("ROLLBACK")
    holder.close()
    await store.create("/a")


def test_what_the_system_refuses_is_reported_with_what_to_do() -> None:
    path = Path("store.db")
    full = sqlite_database.error_of_system(OSError(errno.ENOSPC, "No space left on device"), path)
    foreign = sqlite_database.error_of_system(PermissionError(errno.EACCES, "Permission denied"), path)
    assert (type(full), str(full)) == (StoreFull, "store.db: the disk is full; free some space")
    assert type(foreign) is StoreNotWritable
    assert str(foreign) == "store.db: Permission denied; check the path and its permissions"


async def test_a_full_disk_refuses_writes_reads_on_and_recovers(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    assert isinstance(store, SqliteStore)
    await store.create("/a", b"kept")
    await limit_pages(store, 30)

    with pytest.raises(StoreFull, match="free some space"):
        await store.set("/a", b"x" * 1_000_000)
    assert (await store.get("/a")).payload == b"kept"
    assert store.state is CONNECTED

    await limit_pages(store, 100_000)
    await store.set("/a", b"x" * 1_000_000)


async def limit_pages(store: SqliteStore, pages: int) -> None:
    """At this limit SQLite fails as on a full disk; it belongs to a connection, so it is set there."""

    def limit(database: Database) -> Found:
        database.connection.execute(f"PRAGMA max_page_count = {pages}")
        return Found(None, Watch(WatchKind.NODE, "/", None))

    await store._ask(lambda future: Read(future, limit))


async def test_a_watch_fires_for_changes_older_than_the_kept_events(
    sqlite_sessions: SqliteSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "EVENTS_KEPT", 5)
    store = await sqlite_sessions.open()
    for name in ("changed", "deleted", "parent", "same", "recreated"):
        await store.create(f"/{name}")
    recorder = Recorder()
    for name in ("changed", "deleted", "same", "new", "never", "recreated"):
        await store.exists(f"/{name}", recorder)
    await store.children("/parent", recorder)

    change_behind_its_back(sqlite_sessions.path)

    await eventually(lambda: len(recorder.events) == 5)
    assert {(event.type, event.path) for event in recorder.events} == {
        (EventType.DATA_CHANGED, "/changed"),
        (EventType.DELETED, "/deleted"),
        (EventType.CREATED, "/new"),
        (EventType.DELETED, "/recreated"),
        (EventType.CHILDREN_CHANGED, "/parent"),
    }


def change_behind_its_back(path: Path) -> None:
    """Many transactions of another process between two looks of ours, their events long pruned."""
    database = Database(path, busy_timeout_ms=1000)
    operations = [
        SetData("/changed", b"1"),
        Delete("/deleted"),
        Create("/new"),
        Create("/parent/child"),
        Delete("/recreated"),
        Create("/recreated"),
    ]
    with database.write_transaction():
        zxid = database.zxid()
        for index in range(20):
            draft = Draft(database, zxid=zxid + 1 + index, now_ms=0)
            draft.apply_all(operations[index : index + 1])
            database.save(draft)
        database.connection.execute("DELETE FROM event")
    database.close()


async def test_old_events_are_pruned(
    sqlite_sessions: SqliteSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "EVENTS_KEPT", 5)
    monkeypatch.setattr(sqlite_database, "EVENTS_PRUNED_EVERY", 2)
    store = await sqlite_sessions.open()
    await asyncio.gather(*[store.set("/", b"x") for _ in range(50)])
    await store.close()
    with sqlite3.connect(sqlite_sessions.path) as database:
        (kept,) = database.execute("SELECT count(*) FROM event").fetchone()
    database.close()
    assert kept <= 7


async def test_a_damaged_file_is_reported(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    await store.create("/a", b"x" * 100_000)
    await store.close()
    content = bytearray(sqlite_sessions.path.read_bytes())
    content[100:8192] = b"\xa5" * 8092
    sqlite_sessions.path.write_bytes(content)

    with pytest.raises(StoreDamaged, match="restore a copy"):
        await sqlite_sessions.open()


@pytest.mark.parametrize("content", [b"not a database, but long enough to look at" * 50, b"\0" * 4096])
async def test_a_file_of_another_kind_is_reported_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreDamaged):
        await open_store(f"sqlite:{path}")
    assert path.read_bytes() == content


async def test_a_database_of_another_program_is_reported_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (a)")
    other.close()
    with pytest.raises(StoreDamaged, match="another program"):
        await open_store(f"sqlite:{path}")


async def test_a_store_of_a_newer_version_is_reported(sqlite_sessions: SqliteSessions) -> None:
    await (await sqlite_sessions.open()).close()
    with sqlite3.connect(sqlite_sessions.path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreDamaged, match="newer version"):
        await sqlite_sessions.open()


async def test_an_invalid_path_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    for path in (tmp_path / "file" / "store.db", tmp_path / "directory"):
        with pytest.raises(StoreNotWritable, match=r"writable|permissions"):
            await open_store(f"sqlite:{path}")


TRY_TO_OPEN = """
import asyncio, os, sys
from odradek.coordination.errors import StoreError
from odradek.coordination.urls import open_store
if os.getuid() == 0:
    os.setuid(65534)  # root may write anywhere
try:
    asyncio.run(open_store("sqlite:" + sys.argv[1]))
except StoreError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_without_permission_is_reported(exists: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        path = directory / "store.db"
        if exists:
            asyncio.run(open_and_close(path))
            path.chmod(0o444)
        directory.chmod(0o555)
        try:
            command = [sys.executable, "-c", TRY_TO_OPEN, str(path)]
            reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        finally:
            directory.chmod(0o755)
    assert reported.startswith("StoreNotWritable")
    assert str(path) in reported


async def open_and_close(path: Path) -> None:
    await (await open_store(f"sqlite:{path}")).close()


async def test_a_cancelled_call_disturbs_nobody(sqlite_sessions: SqliteSessions) -> None:
    store = await sqlite_sessions.open()
    calls = [asyncio.create_task(store.create(f"/n{index}")) for index in range(10)]
    await asyncio.sleep(0)
    for call in calls[::2]:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await store.create("/after")
    assert {f"n{index}" for index in range(1, 10, 2)} | {"after"} <= set(await store.children("/"))


def test_it_works_on_uvloop(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = await open_store(f"sqlite:{tmp_path / 'store.db'}")
        recorder = Recorder()
        await store.exists("/a", recorder)
        await store.create("/a", b"1")
        await recorder.expect(EventType.CREATED, "/a")
        await store.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


def test_a_loop_closed_without_closing_frees_the_session(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def open_and_leave() -> None:
        store = await open_store(f"sqlite:{path}")
        await store.create("/mine", ephemeral=True)

    async def look() -> None:
        store = await open_store(f"sqlite:{path}")
        deadline = time.monotonic() + 5
        while await store.exists("/mine") is not None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(open_and_leave())
    asyncio.run(look())


def test_every_sqlite_error_is_one_of_ours(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    reported = sqlite_database.error_of_sqlite(error, tmp_path)
    assert type(reported) is StoreUnavailable
    assert "check the disk" in str(reported)
