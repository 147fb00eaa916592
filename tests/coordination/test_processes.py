"""What the store promises when several processes share it, and some of them die or hang."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from coordination.sessions import Recorder, Sessions, SqliteSessions, eventually
from odradek.coordination.errors import StoreBusy
from odradek.coordination.store import EventType, Store


async def test_a_killed_process_loses_its_ephemerals(real_sessions: Sessions) -> None:
    store, peer = await real_sessions.open(), await real_sessions.peer()
    recorder = Recorder()
    await peer.ask("create_ephemeral", "/mine")
    await store.get("/mine", recorder)

    killed_at = time.monotonic()
    peer.process.kill()

    await eventually(lambda: bool(recorder.events), within_s=real_sessions.notices_death_within_s)
    assert time.monotonic() - killed_at < real_sessions.notices_death_within_s
    await recorder.expect(EventType.DELETED, "/mine")
    assert await store.exists("/mine") is None


@pytest.mark.slow
async def test_a_hung_process_expires_and_is_refused_afterwards(real_sessions: Sessions) -> None:
    store, peer = await real_sessions.open(), await real_sessions.peer()
    recorder = Recorder()
    await store.create("/state", b"before")
    await peer.ask("create_ephemeral", "/mine")
    await store.get("/mine", recorder)

    peer.process.send_signal(signal.SIGSTOP)
    await eventually(lambda: bool(recorder.events), within_s=15)
    peer.process.send_signal(signal.SIGCONT)

    # The first answer may be that the connection broke: the news of the expiry comes with the next one.
    refusal = await peer.ask("set", "/state", "by a zombie")
    while refusal == "ConnectionLoss":
        refusal = await peer.ask("set", "/state", "by a zombie")
    assert refusal == "SessionExpired"
    assert await peer.ask("get", "/state") == "SessionExpired"
    states = await peer.ask("states")
    assert states[-1] == "expired"
    assert (await store.get("/state")).payload == b"before"


@pytest.mark.slow
async def test_a_short_stop_does_no_harm(real_sessions: Sessions) -> None:
    store, peer = await real_sessions.open(), await real_sessions.peer()
    await peer.ask("create_ephemeral", "/mine")

    peer.process.send_signal(signal.SIGSTOP)
    await asyncio.sleep(real_sessions.session_timeout_ms / 1000 / 4)
    peer.process.send_signal(signal.SIGCONT)

    assert await peer.ask("set", "/mine", "still here") == 1
    assert (await store.get("/mine")).payload == b"still here"


async def test_no_update_is_lost_between_processes(real_sessions: Sessions) -> None:
    store = await real_sessions.open()
    peers = await asyncio.gather(*[real_sessions.peer() for _ in range(3)])
    await store.create("/count", b"0")

    conflicts = await asyncio.gather(*[peer.ask("increment", "/count", 40) for peer in peers])

    node = await store.get("/count")
    assert node.payload == b"120"
    assert node.stat.version == 120
    assert all(isinstance(number, int) for number in conflicts)


async def test_a_process_is_notified_of_anothers_writes_before_it_can_read_them(
    real_sessions: Sessions,
) -> None:
    store, peer = await real_sessions.open(), await real_sessions.peer()
    await store.create("/a", b"0")
    for index in range(1, 20):
        recorder = Recorder()
        before = await store.get("/a", recorder)
        peer.send("set", "/a", str(index))
        while (await store.get("/a")).stat.version == before.stat.version:
            await asyncio.sleep(0)
        assert len(recorder.events) == 1
        await peer.answer()


async def test_a_restarted_process_finds_its_old_ephemerals_gone(sqlite_sessions: SqliteSessions) -> None:
    """All were killed, so that no process noticed it: the next one to open the store does."""
    peers = [await sqlite_sessions.peer() for _ in range(2)]
    await peers[0].ask("create_ephemeral", "/ids")
    await peers[1].ask("create_ephemeral", "/controller")
    await peers[1].ask("create", "/stays")
    for peer in peers:
        peer.process.kill()
    for peer in peers:
        await peer.process.wait()

    store = await sqlite_sessions.open()

    assert await store.children("/") == ["stays"]


async def test_a_forked_child_does_not_keep_the_session_alive(sqlite_sessions: SqliteSessions) -> None:
    sqlite_sessions.session_timeout_ms = 60_000  # far longer than `expect` waits
    store, peer = await sqlite_sessions.open(), await sqlite_sessions.peer()
    recorder = Recorder()
    await peer.ask("create_ephemeral", "/mine")
    await store.get("/mine", recorder)

    child = await peer.ask("fork_a_sleeper")
    try:
        await peer.kill()
        await recorder.expect(EventType.DELETED, "/mine")
        assert await store.exists("/mine") is None
        os.kill(child, 0)  # the child is still there
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.slow
async def test_processes_killed_at_any_moment_leave_a_whole_store(sqlite_sessions: SqliteSessions) -> None:
    """Each write is there or not, no session is left over, and the next writer goes on."""
    store = await sqlite_sessions.open()
    await store.create("/count", b"0")
    for round_number in range(12):
        peer = await sqlite_sessions.peer()
        peer.send("increment", "/count", 100_000)
        await asyncio.sleep(0.03 + 0.01 * round_number)
        await peer.kill()
        payload, stat = await store.get("/count")
        assert int(payload) == stat.version
        await store.set("/count", str(stat.version + 1).encode(), stat.version)
    assert int((await store.get("/count")).payload) > 12
    directory = sqlite_sessions.path.with_name("store.db-sessions")
    await eventually(lambda: len(os.listdir(directory)) == 2)


@pytest.mark.slow
async def test_a_process_stopped_in_a_write_holds_nobody_up_for_longer_than_its_session(
    sqlite_sessions: SqliteSessions,
) -> None:
    store, other = await sqlite_sessions.open(), await sqlite_sessions.peer()
    stopped = await sqlite_sessions.peer()
    await stopped.ask("create_ephemeral", "/mine")
    await store.create("/count", b"0")
    stopped.send("stop_in_a_write", "/half-written")
    await eventually(lambda: is_stopped(stopped.process.pid))

    stopped_at = time.monotonic()
    while await refused_as_busy(store):
        assert time.monotonic() < stopped_at + 20
    took_s = time.monotonic() - stopped_at

    session_s = sqlite_sessions.session_timeout_ms / 1000
    assert took_s > session_s / 2
    assert took_s < session_s + 2
    assert await stopped.process.wait() == -signal.SIGKILL
    await eventually_none(store, "/mine")
    assert await store.exists("/half-written") is None
    assert await other.ask("increment", "/count", 5) == 0


@pytest.mark.slow
async def test_a_process_stopped_in_a_write_for_a_moment_is_not_killed(
    sqlite_sessions: SqliteSessions,
) -> None:
    store, stopped = await sqlite_sessions.open(), await sqlite_sessions.peer()
    stopped.send("stop_in_a_write", "/written")
    await eventually(lambda: is_stopped(stopped.process.pid))
    with pytest.raises(StoreBusy):
        await store.create("/a")

    stopped.process.send_signal(signal.SIGCONT)

    assert await stopped.answer() == "/written"
    await store.create("/a")
    assert await store.children("/") == ["a", "written"]
    assert stopped.process.returncode is None


@pytest.mark.slow
async def test_a_newcomer_waits_for_a_process_stopped_in_a_write(sqlite_sessions: SqliteSessions) -> None:
    stopped = await sqlite_sessions.peer()
    stopped.send("stop_in_a_write", "/half-written")
    await eventually(lambda: is_stopped(stopped.process.pid))

    store = await sqlite_sessions.open()

    assert await store.children("/") == []
    assert await stopped.process.wait() == -signal.SIGKILL


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


async def refused_as_busy(store: Store) -> bool:
    try:
        await store.create("/a")
    except StoreBusy:
        return True
    return False


async def eventually_none(store: Store, path: str) -> None:
    while await store.exists(path) is not None:
        await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_idle_processes_cost_next_to_nothing(sqlite_sessions: SqliteSessions) -> None:
    sqlite_sessions.session_timeout_ms = 18_000
    peers = await asyncio.gather(*[sqlite_sessions.peer() for _ in range(3)])
    await asyncio.sleep(1)
    before_s = sum(cpu_s(peer.process.pid) for peer in peers)

    await asyncio.sleep(5)

    spent_s = sum(cpu_s(peer.process.pid) for peer in peers) - before_s
    assert spent_s < 0.01 * 5


def cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
async def test_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    """SQLite switches a new file to WAL only while nobody else uses it."""
    for round_number in range(8):
        sessions = SqliteSessions(tmp_path / str(round_number))
        (tmp_path / str(round_number)).mkdir()
        peers = await asyncio.gather(*[sessions.peer() for _ in range(3)])
        names = await asyncio.gather(
            *[peer.ask("create_ephemeral", f"/{peer.process.pid}") for peer in peers]
        )
        assert len(names) == 3
        await sessions.close()
