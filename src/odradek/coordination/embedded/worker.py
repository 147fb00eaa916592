"""The thread of the embedded store: runs the event loop's jobs, and checks for changes in between.

Jobs that wait together share a transaction: many reads one view, many writes one fsync. Each transaction
first checks that the session is live, then reads the events of other processes, so that watches fire before
anything newer is read.

Between jobs the thread sleeps until a process that has committed wakes it (wakeups.py), or the kernel reports
that a process has exited. It also checks everything at an interval: for hanging processes, and for a wake-up
that was never sent, because its sender was stopped after its commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from odradek.coordination.embedded.database import Database, error_of_system
from odradek.coordination.embedded.lock_owners import write_lock_owners
from odradek.coordination.embedded.sessions import OwnSession, Peers, remove_orphans, wakeup_file
from odradek.coordination.embedded.wakeups import COMMIT, Wakeups
from odradek.coordination.errors import OperationRefused, SessionExpired, StoreError, StoreUnavailable
from odradek.coordination.store import Watcher, WatchEvent
from odradek.coordination.watches import Watch, WatchDelivery, Watches, missed_event
from odradek.coordination.znodes import Draft

LOOK_INTERVAL_MS = 500
LOOKS_PER_TIMEOUT = 10
# Alone, nothing can change but by a newcomer, who wakes the others.
LOOK_INTERVAL_ALONE_MS = 3000
LOOKS_ALONE_PER_TIMEOUT = 6
# Where the kernel does not report the exit of another process: one of another container, or not on Linux.
LOOK_INTERVAL_UNWATCHED_MS = 50
RETRY_INTERVAL_MS = 50
FILE_CHECK_INTERVAL_MS = 1000
MAX_JOBS_PER_TRANSACTION = 512
LONGEST_BUSY_MS = 5000


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

    def deliver(self, deliveries: Sequence[WatchDelivery], outcomes: Sequence[JobResult]) -> None:
        """Watch events first, then results."""

    def end(self, error: Exception) -> None:
        """The session has ended; pending calls fail."""


class Worker:
    """One session's thread. The loop only calls `submit`, raises `loop_beats`, reads `contact_ms`."""

    def __init__(
        self,
        path: Path,
        session_timeout_ms: int,
        loop: asyncio.AbstractEventLoop,
        face: WorkerCallbacks,
        *,
        is_synced: bool = True,
    ) -> None:
        self.loop_beats = 0
        self.contact_ms = monotonic_ms()
        self.session_id = _random_session_id()
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._path = path
        self._session_timeout_ms = session_timeout_ms
        self._is_synced = is_synced
        self._loop = loop
        self._face = face
        self._watches = Watches()
        self._seen_zxid = 0
        self._seen_data_version = -1
        self._shown_beats = 0
        self._is_open = False
        self._next_look_ms = 0
        self._next_file_check_ms = 0
        self._database: Database | None = None
        self._own: OwnSession | None = None
        self._wakeups: Wakeups | None = None
        self._peers = Peers(self._sessions_directory)

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

    def submit(self, job: Job) -> None:
        """Let the thread do this job; only after `opened`."""
        self._jobs.put(job)
        if self._wakeups is not None:
            self._wakeups.wake()

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
        cause = (
            error
            if isinstance(error, StoreError)
            else SessionExpired(f"the store's thread failed: {error!r}")
        )
        with contextlib.suppress(SessionExpired):  # the loop may be closed
            self._answer([], [JobResult(opened, error=cause)])
            self._call_loop(self._face.end, error)

    def _work(self) -> None:
        while True:
            self._sleep()
            for kind, group in groupby(self._next_jobs(), key=type):
                if kind is Close:
                    self._close(group)
                    return
                self._serve(group)
            if monotonic_ms() >= self._next_look_ms:
                self._next_look_ms = monotonic_ms() + self._look_around()

    def _sleep(self) -> None:
        """Return when there is a job, or something to look at."""
        assert self._wakeups is not None
        poller = select.poll()
        poller.register(self._wakeups.fd, select.POLLIN)
        for fd in self._peers.exit_fds():
            poller.register(fd, select.POLLIN)
        longest_ms = max(0, self._next_look_ms - monotonic_ms()) if self._jobs.empty() else 0
        for fd, _ in poller.poll(longest_ms):
            if fd != self._wakeups.fd or COMMIT in self._wakeups.read():
                self._next_look_ms = 0

    def _next_jobs(self) -> list[Job]:
        jobs: list[Job] = []
        with contextlib.suppress(queue.Empty):
            while len(jobs) < MAX_JOBS_PER_TRANSACTION:
                jobs.append(self._jobs.get_nowait())
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
        self._peers.wake()
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

    def _advance(self, zxid: int, events: Sequence[WatchEvent]) -> list[WatchDelivery]:
        self._seen_zxid = zxid
        return self._watches.trigger(events)

    # Checks between jobs

    def _look_around(self) -> int:
        """Check everything once; returns after how many ms to do it again."""
        if self._loop.is_closed():
            raise SessionExpired("the event loop of this store is closed")
        try:
            self._check_file()
            self._notice_changes()
            self._expire(self._peers.find_dead(monotonic_ms()))
            self._show_beat()
        except StoreUnavailable:
            return RETRY_INTERVAL_MS  # no contact: the loop sees it by `contact_ms`
        self.contact_ms = monotonic_ms()
        return self._look_interval_ms()

    def _look_interval_ms(self) -> int:
        other_timeout_ms = self._peers.shortest_timeout_ms
        if other_timeout_ms is None:
            return min(LOOK_INTERVAL_ALONE_MS, self._session_timeout_ms // LOOKS_ALONE_PER_TIMEOUT)
        if not self._peers.are_watched:
            return LOOK_INTERVAL_UNWATCHED_MS
        timeout_ms = min(other_timeout_ms, self._session_timeout_ms)
        return min(LOOK_INTERVAL_MS, timeout_ms // LOOKS_PER_TIMEOUT)

    def _while_busy(self) -> None:
        """Another process locks the database: stay alive, and end a lock that outlives its session."""
        if not self._is_open:
            self.loop_beats += 1  # the loop waits for the result, and does not beat yet
        if self._own is not None:
            self._show_beat()
        self._peers.add_unknown(self.session_id)
        self._peers.find_dead(monotonic_ms())
        if self._peers.has_silent:
            self._peers.kill_silent(write_lock_owners(self._path))

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
        self._peers.wake()
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
        """Begin the session; waits for a stopped process that has the database locked until it is killed."""
        longest_busy_ms = min(LONGEST_BUSY_MS, self._session_timeout_ms // 3)
        self._database = database = Database(
            self._path,
            busy_timeout_ms=self._session_timeout_ms + longest_busy_ms,
            is_synced=self._is_synced,
            while_busy=self._while_busy,
        )
        self._make_files()
        with database.write_transaction():
            timeouts_ms = database.session_timeouts_ms()
            self._peers.refresh(timeouts_ms)
            dead = self._peers.find_dead(monotonic_ms())
            zxid, _ = self._end_sessions(dead, database.zxid())
            self._begin_session(zxid + 1)
            remove_orphans(self._sessions_directory, {*timeouts_ms, self.session_id})
        self._peers.remove_files(dead)
        self._peers.wake()
        database.busy_timeout_ms = longest_busy_ms
        self._is_open = True

    def _make_files(self) -> None:
        # Before the first transaction: a process that is stopped in it can be found by them.
        try:
            self._sessions_directory.mkdir(mode=0o700, exist_ok=True)
            # First the FIFO: a process that finds the session opens both.
            self._wakeups = Wakeups(wakeup_file(self._sessions_directory, self.session_id))
            self._own = OwnSession(self._sessions_directory, self.session_id, self._session_timeout_ms)
        except OSError as error:
            raise error_of_system(error, self._sessions_directory) from error

    def _begin_session(self, zxid: int) -> None:
        assert self._own is not None
        self._own.keep_file()
        self._seen_zxid = zxid
        self._open_database.add_session(self.session_id, self._session_timeout_ms)
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
            self._peers.remove_files({self.session_id})
            self._peers.wake()
        self._release()
        self._answer([], outcomes)

    def _release(self) -> None:
        self._watches.clear()
        self._peers.close()
        if self._wakeups is not None:
            self._wakeups.close()
        if self._own is not None:
            self._own.close()
        if self._database is not None:
            self._database.close()

    def _answer(self, deliveries: Sequence[WatchDelivery], outcomes: Sequence[JobResult]) -> None:
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


def _random_session_id() -> int:
    """Positive, and within the 64 bits of SQLite's integers."""
    return int.from_bytes(os.urandom(8), "big") >> 1 or 1
