"""The thread of the embedded store: runs the event loop's jobs, and checks for changes in between.

Jobs that wait together share a transaction: many reads one view, many writes one fsync. Each transaction
first checks that the session is live, then reads the events of other processes, so that watches fire before
anything newer is read. Between jobs the thread checks for changes by others and for dead sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from odradek.coordination.errors import OperationRefused, SessionExpired, StoreError, StoreUnavailable
from odradek.coordination.sqlite_database import Database
from odradek.coordination.sqlite_sessions import OwnSession, Peers, remove_orphans
from odradek.coordination.store import Watcher, WatchEvent
from odradek.coordination.watches import Delivery, Watch, Watches, missed_event
from odradek.coordination.znodes import Draft

LOOK_INTERVAL_MS = 20
# Without other sessions a check of their directory is enough: every writer opens one first. A read of the
# database holds the GIL several times for a moment; a check of the directory for a few microseconds.
GLANCE_INTERVAL_MS = 500
# The database is read at this interval all the same; more often if a short time-out needs it.
LOOK_INTERVAL_ALONE_MS = 3000
LOOKS_ALONE_PER_TIMEOUT = 6
FILE_CHECK_INTERVAL_MS = 1000
MAX_JOBS_PER_TRANSACTION = 512


class Found(NamedTuple):
    """What a read returns, and where a watch would be set."""

    result: Any
    watch: Watch


class Read(NamedTuple):
    """Read something, and optionally watch it."""

    future: asyncio.Future[Any]
    run: Callable[[Database], Found]
    watcher: Watcher | None = None


class Write(NamedTuple):
    """Change something, all or nothing."""

    future: asyncio.Future[Any]
    run: Callable[[Draft], Any]


class Close(NamedTuple):
    """End the session and the thread."""

    future: asyncio.Future[Any]


Job = Read | Write | Close


class JobResult(NamedTuple):
    """The result of a job."""

    future: asyncio.Future[Any]
    result: Any = None
    error: StoreError | None = None


class WorkerCallbacks(Protocol):
    """The part of the store on the loop; the thread reaches it by `call_soon_threadsafe` only."""

    def deliver(self, deliveries: Sequence[Delivery], outcomes: Sequence[JobResult]) -> None:
        """Watch events first, then results."""

    def end(self, error: Exception) -> None:
        """The session has ended; pending calls fail."""


class Worker:
    """One session's thread. The loop only puts into `jobs`, raises `loop_beats`, reads `contact_ms`."""

    def __init__(
        self,
        path: Path,
        session_timeout_ms: int,
        loop: asyncio.AbstractEventLoop,
        face: WorkerCallbacks,
        *,
        is_synced: bool = True,
    ) -> None:
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.loop_beats = 0
        self.contact_ms = monotonic_ms()
        self.session_id = 0
        self._path = path
        self._session_timeout_ms = session_timeout_ms
        self._is_synced = is_synced
        self._loop = loop
        self._face = face
        self._watches = Watches()
        self._seen_zxid = 0
        self._seen_data_version = -1
        self._shown_beats = 0
        self._alone_interval_ms = min(LOOK_INTERVAL_ALONE_MS, session_timeout_ms // LOOKS_ALONE_PER_TIMEOUT)
        self._looked_ms = 0
        self._next_look_ms = 0
        self._next_file_check_ms = 0
        self._database: Database | None = None
        self._own: OwnSession | None = None
        self._peers = Peers(self._sessions_directory, longest_step_ms=4 * LOOK_INTERVAL_MS)

    @property
    def _sessions_directory(self) -> Path:
        return self._path.with_name(self._path.name + "-sessions")

    @property
    def _open_database(self) -> Database:
        assert self._database is not None
        return self._database

    def start(self, opened: asyncio.Future[None]) -> None:
        """Open the file in the new thread; `opened` has the result."""
        threading.Thread(target=self._run, args=(opened,), name="odradek-store", daemon=True).start()

    def _run(self, opened: asyncio.Future[None]) -> None:
        try:
            self._open()
            self._answer([], [JobResult(opened)])
            self._work()
        except StoreError as error:
            self._end(opened, error)
        except Exception as error:  # a bug: free the session to be safe, and notify the loop
            self._end(opened, error)
        finally:
            self._release()

    def _end(self, opened: asyncio.Future[None], error: Exception) -> None:
        told = (
            error
            if isinstance(error, StoreError)
            else SessionExpired(f"the store's thread failed: {error!r}")
        )
        with contextlib.suppress(SessionExpired):  # the loop may be closed
            self._answer([], [JobResult(opened, error=told)])
            self._call_loop(self._face.end, error)

    def _work(self) -> None:
        while True:
            for kind, group in groupby(self._next_jobs(), key=type):
                if kind is Close:
                    self._close(group)
                    return
                self._serve(group)
            if monotonic_ms() >= self._next_look_ms:
                self._look_around()
                glance_ms = min(GLANCE_INTERVAL_MS, self._alone_interval_ms)
                self._next_look_ms = monotonic_ms() + (LOOK_INTERVAL_MS if self._peers else glance_ms)

    def _next_jobs(self) -> list[Job]:
        wait_s = max(0, self._next_look_ms - monotonic_ms()) / 1000
        jobs: list[Job] = []
        try:
            jobs.append(self.jobs.get(timeout=wait_s))
            while len(jobs) < MAX_JOBS_PER_TRANSACTION:
                jobs.append(self.jobs.get_nowait())
        except queue.Empty:
            pass
        return jobs

    # Jobs

    def _serve(self, group: Iterable[Any]) -> None:
        jobs = list(group)
        try:
            if isinstance(jobs[0], Read):
                self._serve_reads(jobs)
            else:
                self._serve_writes(jobs)
        except StoreUnavailable as error:
            self._answer([], [JobResult(job.future, error=error) for job in jobs])
        else:
            self.contact_ms = monotonic_ms()

    def _serve_reads(self, jobs: Sequence[Read]) -> None:
        watches = []
        outcomes = []
        with self._open_database.read_transaction():
            zxid, events = self._catch_up()
            for job in jobs:
                try:
                    found = job.run(self._open_database)
                except OperationRefused as refusal:
                    outcomes.append(JobResult(job.future, error=refusal))
                    continue
                outcomes.append(JobResult(job.future, found.result))
                if job.watcher is not None:
                    watches.append((found.watch, job.watcher))
        # First the old watches: the new ones were set in a view after these events.
        deliveries = self._advance(zxid, events)
        for watch, watcher in watches:
            self._watches.add(watch, watcher)
        self._answer(deliveries, outcomes)

    def _serve_writes(self, jobs: Sequence[Write]) -> None:
        outcomes = []
        with self._open_database.write_transaction():
            zxid, events = self._catch_up()
            for job in jobs:
                draft = self._draft(zxid + 1)
                try:
                    result = job.run(draft)
                except OperationRefused as refusal:
                    outcomes.append(JobResult(job.future, error=refusal))
                    continue
                self._open_database.save(draft)
                zxid += 1
                events += draft.events
                outcomes.append(JobResult(job.future, result))
        self._answer(self._advance(zxid, events), outcomes)

    def _draft(self, zxid: int) -> Draft:
        now_ms = time.time_ns() // 1_000_000
        return Draft(self._open_database, zxid=zxid, now_ms=now_ms, session_id=self.session_id)

    def _catch_up(self) -> tuple[int, list[WatchEvent]]:
        """Inside a transaction: its zxid, and the events since the last one seen."""
        database = self._open_database
        if not database.has_session(self.session_id):
            raise SessionExpired("this process sent no heartbeat for longer than the time-out")
        zxid = database.zxid()
        if zxid == self._seen_zxid:
            return zxid, []
        events = database.events_since(self._seen_zxid)
        return zxid, self._missed_events() if events is None else events

    def _missed_events(self) -> list[WatchEvent]:
        """The events are no longer kept: compare the state of each watch with the present one."""
        missed = []
        for watch in self._watches:
            node = self._open_database.find(watch.path)
            event = missed_event(watch, None if node is None else node.stat())
            if event is not None:
                missed.append(event)
        return missed

    def _advance(self, zxid: int, events: Sequence[WatchEvent]) -> list[Delivery]:
        self._seen_zxid = zxid
        return self._watches.trigger(events)

    # Checks between jobs

    def _look_around(self) -> None:
        if self._loop.is_closed():
            raise SessionExpired("the event loop of this store is closed")
        if not self._is_look_needed():
            return
        try:
            self._check_file()
            self._notice_changes()
            self._expire(self._peers.find_dead(monotonic_ms()))
            self._show_beat()
        except StoreUnavailable:
            return  # no contact: the loop sees it by `contact_ms`, and the next check retries
        self.contact_ms = self._looked_ms = monotonic_ms()

    def _is_look_needed(self) -> bool:
        assert self._own is not None
        is_due = monotonic_ms() - self._looked_ms >= self._alone_interval_ms
        return is_due or bool(self._peers) or self._peers.may_be_others(self._own)

    def _check_file(self) -> None:
        if monotonic_ms() < self._next_file_check_ms:
            return
        self._next_file_check_ms = monotonic_ms() + FILE_CHECK_INTERVAL_MS
        if not self._open_database.is_still_there():
            raise SessionExpired(f"{self._path} was removed or replaced while it was in use")

    def _notice_changes(self) -> None:
        data_version = self._open_database.data_version()
        if data_version == self._seen_data_version:
            return
        with self._open_database.read_transaction():
            zxid, events = self._catch_up()
            timeouts_ms = self._open_database.session_timeouts_ms()
        self._watch_peers(timeouts_ms)
        self._answer(self._advance(zxid, events), [])
        self._seen_data_version = data_version

    def _watch_peers(self, timeouts_ms: dict[int, int]) -> None:
        timeouts_ms.pop(self.session_id, None)
        self._peers.refresh(timeouts_ms)

    def _expire(self, dead: set[int]) -> None:
        """Any process that finds a dead session removes it; the first transaction wins."""
        if not dead:
            return
        with self._open_database.write_transaction():
            zxid, events = self._catch_up()
            zxid, more_events = self._end_sessions(dead, zxid)
            timeouts_ms = self._open_database.session_timeouts_ms()
        self._peers.remove_files(dead)
        self._watch_peers(timeouts_ms)
        self._answer(self._advance(zxid, events + more_events), [])

    def _end_sessions(self, session_ids: set[int], zxid: int) -> tuple[int, list[WatchEvent]]:
        """Inside a write transaction: remove these sessions and their ephemeral nodes."""
        database = self._open_database
        events: list[WatchEvent] = []
        for session_id in sorted(session_ids):
            if not database.has_session(session_id):
                continue
            zxid += 1
            draft = self._draft(zxid)
            draft.remove_all(database.ephemerals(session_id))
            database.save(draft)
            database.remove_session(session_id)
            events += draft.events
        return zxid, events

    def _show_beat(self) -> None:
        assert self._own is not None
        if self.loop_beats != self._shown_beats:
            self._shown_beats = self.loop_beats
            self._own.beat(self._shown_beats)

    # Beginning and end

    def _open(self) -> None:
        busy_timeout_ms = min(5000, self._session_timeout_ms // 3)
        self._database = Database(self._path, busy_timeout_ms=busy_timeout_ms, is_synced=self._is_synced)
        with self._database.write_transaction():
            self._sessions_directory.mkdir(mode=0o700, exist_ok=True)
            timeouts_ms = self._database.session_timeouts_ms()
            remove_orphans(self._sessions_directory, set(timeouts_ms))
            self._peers.refresh(timeouts_ms)
            dead = self._peers.find_dead(monotonic_ms())
            zxid, _ = self._end_sessions(dead, self._database.zxid())
            self._begin_session(zxid + 1)
        self._peers.remove_files(dead)

    def _begin_session(self, zxid: int) -> None:
        # The zxid of its first transaction is a unique session id.
        self.session_id = self._seen_zxid = zxid
        self._own = OwnSession(self._sessions_directory, zxid)
        self._open_database.add_session(zxid, self._session_timeout_ms)
        self._open_database.save(self._draft(zxid))

    def _close(self, jobs: Iterable[Any]) -> None:
        outcomes = [JobResult(job.future) for job in jobs]
        try:
            with self._open_database.write_transaction():
                self._end_sessions({self.session_id}, self._open_database.zxid())
        except StoreUnavailable:
            pass  # the freed lock is noticed by other processes, or at the next start
        else:
            assert self._own is not None
            self._own.remove()
        self._release()
        self._answer([], outcomes)

    def _release(self) -> None:
        self._watches.clear()
        self._peers.close()
        if self._own is not None:
            self._own.close()
        if self._database is not None:
            self._database.close()

    def _answer(self, deliveries: Sequence[Delivery], outcomes: Sequence[JobResult]) -> None:
        if deliveries or outcomes:
            self._call_loop(self._face.deliver, deliveries, outcomes)

    def _call_loop(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError as error:  # the loop was closed without closing the store
            raise SessionExpired("the event loop of this store is closed") from error


def monotonic_ms() -> int:
    """Milliseconds of a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000
