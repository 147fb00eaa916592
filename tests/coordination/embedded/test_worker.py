"""The thread of a session by itself: which jobs share a transaction, the order of results, its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odradek.coordination.embedded import worker as worker_module
from odradek.coordination.embedded.database import Database
from odradek.coordination.embedded.worker import Close, Found, JobResult, Read, Worker, Write
from odradek.coordination.errors import NodeExists, SessionExpired
from odradek.coordination.store import Create, EventType, Operation, SetData, WatchEvent
from odradek.coordination.watches import Watch, WatchDelivery, WatchKind
from odradek.coordination.znodes import Draft

SESSION_TIMEOUT_MS = 5000


class Loop:
    """Stands for the store: keeps what the thread delivers, in order, and completes the futures."""

    def __init__(self) -> None:
        self.delivered: list[tuple[list[WatchEvent], list[Any]]] = []
        self.ended: list[Exception] = []

    def deliver(self, deliveries: Sequence[WatchDelivery], outcomes: Sequence[JobResult]) -> None:
        results = [outcome.result if outcome.error is None else outcome.error for outcome in outcomes]
        self.delivered.append(([delivery.event for delivery in deliveries], results))
        for delivery in deliveries:
            delivery.watcher(delivery.event)
        for outcome in outcomes:
            if outcome.error is not None:
                outcome.future.set_exception(outcome.error)
            else:
                outcome.future.set_result(outcome.result)

    def end(self, error: Exception) -> None:
        self.ended.append(error)


class Given:
    """A worker with its thread running."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loop = Loop()
        self.worker = Worker(path, SESSION_TIMEOUT_MS, asyncio.get_running_loop(), self.loop)
        self.may_go_on = threading.Event()

    @classmethod
    async def start(cls, directory: Path) -> Given:
        given = cls(directory / "store.db")
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        given.worker.start(opened)
        await opened
        return given

    def write(self, *operations: Operation) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.worker.submit(Write(future, lambda draft: draft.apply_all(operations)))
        return future

    def read(
        self,
        path: str,
        watcher: Callable[[WatchEvent], None] | None = None,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> asyncio.Future[Any]:
        """The payload at a path, None without a node; `meanwhile` is called in the thread."""

        def run(database: Database) -> Found:
            meanwhile()
            node = database.find(path)
            stat = None if node is None else node.stat()
            return Found(None if node is None else node.payload, Watch(WatchKind.NODE, path, stat))

        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.worker.submit(Read(future, run, watcher))
        return future

    async def hold(self) -> None:
        """Let the thread wait inside of a read, so that jobs come together behind it; see `may_go_on`."""
        is_inside = threading.Event()

        def wait() -> None:
            is_inside.set()
            assert self.may_go_on.wait(20)

        self.read("/", meanwhile=wait)
        await asyncio.to_thread(is_inside.wait, 20)

    async def close(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.worker.submit(Close(future))
        await future


def write_as_another_process(path: Path, operation: Operation) -> None:
    database = Database(path, busy_timeout_ms=1000)
    with database.write_transaction():
        draft = Draft(database, zxid=database.zxid() + 1, now_ms=0)
        draft.apply_all([operation])
        database.save(draft)
    database.close()


def count_transactions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the transactions that begin from now on."""
    begun: list[str] = []

    def counted(kind: str, begin: Callable[[Database], Any], database: Database) -> Any:
        begun.append(kind)
        return begin(database)

    for kind in ("read", "write"):
        name = f"{kind}_transaction"
        counting = partial(counted, kind, getattr(Database, name))
        monkeypatch.setattr(Database, name, lambda database, counting=counting: counting(database))
    return begun


async def test_jobs_that_wait_together_share_a_transaction_by_kind_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = await Given.start(tmp_path)
    await given.hold()
    begun = count_transactions(monkeypatch)

    read_in: list[int] = []

    def read() -> asyncio.Future[Any]:
        return given.read("/a", meanwhile=lambda: read_in.append(len(begun)))

    jobs = [given.write(Create("/a", b"0")), given.write(SetData("/a", b"1"))]
    jobs += [read(), read(), given.write(SetData("/a", b"2")), read()]
    given.may_go_on.set()
    results = await asyncio.gather(*jobs)

    assert [results[index] for index in (2, 3, 5)] == [b"1", b"1", b"2"]
    assert begun.count("write") == 2
    assert read_in[0] == read_in[1] < read_in[2]
    await given.close()


async def test_a_transaction_has_at_most_so_many_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "MAX_JOBS_PER_TRANSACTION", 10)
    given = await Given.start(tmp_path)
    await given.hold()
    begun = count_transactions(monkeypatch)

    writes = [given.write(Create(f"/{number}")) for number in range(25)]
    given.may_go_on.set()
    await asyncio.gather(*writes)

    assert begun.count("write") == 3
    await given.close()


async def test_a_write_that_is_refused_fails_alone(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    await given.hold()

    first = given.write(Create("/a", b"first"))
    refused = given.write(Create("/new"), Create("/a", b"second"))
    last = given.write(Create("/b"))
    given.may_go_on.set()

    with pytest.raises(NodeExists):
        await refused
    await asyncio.gather(first, last)
    assert await asyncio.gather(*map(given.read, ("/a", "/b", "/new"))) == [b"first", b"", None]
    await given.close()


async def test_a_read_is_delivered_after_the_events_of_all_that_it_saw(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    events: list[WatchEvent] = []
    await given.write(Create("/a", b"old"))
    await given.read("/a", events.append)

    await given.hold()
    read = given.read("/a")
    write_as_another_process(given.path, SetData("/a", b"new"))
    given.may_go_on.set()

    assert await read == b"new"
    changed = WatchEvent(EventType.DATA_CHANGED, "/a")
    assert events == [changed]
    delivered_at = next(at for at, (found, _) in enumerate(given.loop.delivered) if changed in found)
    seen_at = next(at for at, (_, results) in enumerate(given.loop.delivered) if b"new" in results)
    assert delivered_at <= seen_at
    await given.close()


async def test_a_watch_does_not_fire_for_what_its_own_read_saw(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    events: list[WatchEvent] = []
    await given.hold()

    write, read = given.write(Create("/a", b"1")), given.read("/a", events.append)
    given.may_go_on.set()
    await asyncio.gather(write, read)
    assert read.result() == b"1"
    assert events == []

    await given.write(SetData("/a", b"2"))
    assert events == [WatchEvent(EventType.DATA_CHANGED, "/a")]
    await given.close()


async def test_closing_removes_the_sessions_nodes_and_files_after_the_jobs_before_it(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    session = given.worker.session_id
    write = given.write(Create("/mine", ephemeral=True), Create("/kept"))
    await given.close()

    assert write.done()
    assert given.loop.ended == []
    assert list((tmp_path / "store.db-sessions").iterdir()) == []
    database = Database(given.path, busy_timeout_ms=1000)
    assert (database.find("/mine"), database.find("/kept") is not None) == (None, True)
    assert not database.has_session(session)
    database.close()


async def test_a_fault_in_a_job_ends_the_session_instead_of_going_on_in_doubt(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    given.write(Create("/mine", ephemeral=True))
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def fail(draft: Draft) -> None:
        raise ZeroDivisionError("a fault")

    given.worker.submit(Write(future, fail))
    while not given.loop.ended:
        await asyncio.sleep(0.001)
    assert isinstance(given.loop.ended[0], ZeroDivisionError)

    # Its lock is free, so that the next one to come removes its nodes.
    other = await Given.start(tmp_path)
    assert await other.read("/mine") is None
    await other.close()


async def test_a_session_that_was_removed_by_others_is_over_at_the_next_job(tmp_path: Path) -> None:
    given = await Given.start(tmp_path)
    database = Database(given.path, busy_timeout_ms=1000)
    with database.write_transaction():
        database.remove_session(given.worker.session_id)
    database.close()

    given.read("/")
    while not given.loop.ended:
        await asyncio.sleep(0.001)
    assert isinstance(given.loop.ended[0], SessionExpired)
