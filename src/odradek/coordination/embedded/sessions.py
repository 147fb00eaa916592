"""Session files: a lock that detects dead processes, and a heartbeat that detects hanging ones.

    DATABASE-sessions/<session id, 16 hex digits>

    bytes | what, little endian
    ------+----------------------------------------------------------------------------------
    0-7   | heartbeats so far; grows while the owner's event loop runs
    8-11  | pid of the owner
    12-19 | its start time in clock ticks since boot
    20-27 | inode of its pid namespace
    28-31 | time-out of the session in ms

The owner holds an exclusive `flock` on its file. The kernel frees it when the process dies, and a pidfd lets
the others notice at once. A session that keeps its lock without heartbeats for its time-out expires, too; if
its owner was stopped inside a transaction, and so locks the database, it is killed.
Only on a local file system, as SQLite's WAL.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import struct
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path

from odradek.coordination.embedded.processes import ProcessIdentity, WatchedProcess, this_process, watch
from odradek.coordination.embedded.wakeups import COMMIT, open_for_wakeups, write_wakeup

logger = logging.getLogger(__name__)

_BEATS = struct.Struct("<Q")
_OWNER = struct.Struct("<IQQI")
STEPS_PER_TIMEOUT = 5


def session_file(directory: Path, session_id: int) -> Path:
    """Where a session's file is."""
    return directory / f"{session_id:016x}"


def wakeup_file(directory: Path, session_id: int) -> Path:
    """Where the FIFO is that wakes a session's process."""
    return directory / f"{session_id:016x}.wake"


class OwnSession:
    """The session of this process: holds the lock, sends heartbeats. Owned by the store's thread."""

    def __init__(self, directory: Path, session_id: int, timeout_ms: int) -> None:
        self.path = session_file(directory, session_id)
        self._timeout_ms = timeout_ms
        self._fd = self._make_file()
        _own_sessions.add(self)

    def _make_file(self) -> int:
        # Other processes read only names that are session ids, so that they see the file locked and complete.
        unnamed = self.path.with_suffix(".new")
        fd = os.open(unnamed, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        owner = this_process()
        os.pwrite(fd, _BEATS.pack(0) + _OWNER.pack(*owner, self._timeout_ms), 0)
        unnamed.rename(self.path)
        return fd

    def keep_file(self) -> None:
        """Create the file again if another process removed it while this one was stopped.

        Call it with the write lock of the database held: files without a session are removed only under it.
        """
        if not self.path.exists():
            os.close(self._fd)
            self._fd = self._make_file()

    def beat(self, count: int) -> None:
        """Send a heartbeat."""
        os.pwrite(self._fd, _BEATS.pack(count), 0)

    def close(self) -> None:
        """Free the lock: other processes see that this session has ended."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def remove(self) -> None:
        """Close and delete the file, after the session was taken out of the database."""
        self.path.unlink(missing_ok=True)
        self.close()


# A forked child would keep the lock after its parent's death, so it closes its copy at once.
_own_sessions: weakref.WeakSet[OwnSession] = weakref.WeakSet()


def _close_sessions_of_parent() -> None:
    for session in list(_own_sessions):
        session.close()


os.register_at_fork(after_in_child=_close_sessions_of_parent)


class _Peer:
    """Another session, as seen from here."""

    def __init__(self, fd: int, timeout_ms: int | None, wake_fd: int | None) -> None:
        self.fd = fd
        self.wake_fd = wake_fd
        content = os.pread(fd, _BEATS.size + _OWNER.size, 0)
        self.process: WatchedProcess | None = None
        self.last_beat = content[: _BEATS.size]
        self.silent_ms = 0
        self._observed_ms: int | None = None
        self.timeout_ms = timeout_ms or 0
        if len(content) == _BEATS.size + _OWNER.size:
            *identity, written_timeout_ms = _OWNER.unpack_from(content, _BEATS.size)
            self.process = watch(ProcessIdentity(*identity))
            self.timeout_ms = timeout_ms or written_timeout_ms

    def has_ended(self) -> bool:
        """Whether its owner has exited or given it up.

        The lock is tried with a shared one, so that several processes can check at a time.
        """
        if self.process is not None and self.process.has_exited():
            return True
        try:
            fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return True

    def observe(self, now_ms: int) -> None:
        """Count the time without a heartbeat.

        While this process was stopped itself it could not observe any, so one step counts for little.
        """
        elapsed_ms = 0 if self._observed_ms is None else now_ms - self._observed_ms
        self._observed_ms = now_ms
        beat = os.pread(self.fd, _BEATS.size, 0)
        if beat != self.last_beat:
            self.last_beat, self.silent_ms = beat, 0
        else:
            self.silent_ms += min(elapsed_ms, self.timeout_ms // STEPS_PER_TIMEOUT)

    @property
    def is_silent(self) -> bool:
        """Whether the time-out has passed without a heartbeat."""
        return self.silent_ms > self.timeout_ms

    def close(self) -> None:
        os.close(self.fd)
        if self.wake_fd is not None:
            os.close(self.wake_fd)
        if self.process is not None:
            self.process.close()


class Peers:
    """All other sessions of the store. Owned by the store's thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._peers: dict[int, _Peer] = {}
        self._without_file: set[int] = set()

    def refresh(self, timeouts_ms: Mapping[int, int]) -> None:
        """Watch exactly these sessions from now on."""
        for session_id in self._peers.keys() - timeouts_ms.keys():
            self._peers.pop(session_id).close()
        self._without_file = set()
        for session_id in timeouts_ms.keys() - self._peers.keys():
            if not self._open(session_id, timeouts_ms[session_id]):
                self._without_file.add(session_id)

    def add_unknown(self, own_id: int) -> None:
        """Watch sessions that have a file, too: a process may be stopped while it begins its session."""
        for session_id in session_ids(self._directory):
            if session_id != own_id and session_id not in self._peers:
                self._open(session_id, None)

    def _open(self, session_id: int, timeout_ms: int | None) -> bool:
        try:
            fd = os.open(session_file(self._directory, session_id), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        wake_fd = open_for_wakeups(wakeup_file(self._directory, session_id))
        self._peers[session_id] = _Peer(fd, timeout_ms, wake_fd)
        return True

    def __len__(self) -> int:
        return len(self._peers)

    @property
    def shortest_timeout_ms(self) -> int | None:
        """The shortest time-out of the other sessions."""
        return min((peer.timeout_ms for peer in self._peers.values()), default=None)

    @property
    def are_watched(self) -> bool:
        """Whether the kernel reports the exit of each of them, by `exit_fds`."""
        return all(peer.process is not None for peer in self._peers.values())

    def exit_fds(self) -> Iterator[int]:
        """Descriptors that become readable when a process exits; each until `find_dead` returned it."""
        for peer in self._peers.values():
            if peer.process is not None and peer.process.fd is not None:
                yield peer.process.fd

    def wake(self) -> None:
        """Notify all other processes that this one has committed."""
        for peer in self._peers.values():
            if peer.wake_fd is not None:
                write_wakeup(peer.wake_fd, COMMIT)

    def find_dead(self, now_ms: int) -> set[int]:
        """The sessions whose owner has exited or no longer sends heartbeats."""
        dead = set()
        for session_id, peer in self._peers.items():
            peer.observe(now_ms)
            if peer.is_silent or peer.has_ended():
                dead.add(session_id)
        return dead | self._without_file

    @property
    def has_silent(self) -> bool:
        """Whether the time-out of a session has passed without a heartbeat, as of `find_dead`."""
        return any(peer.is_silent for peer in self._peers.values())

    def kill_silent(self, pids: set[int]) -> None:
        """Kill those of these processes whose session is over; they must not lock the database any longer."""
        for session_id, peer in self._peers.items():
            process = peer.process
            if not peer.is_silent or process is None or process.identity.pid not in pids:
                continue
            if process.identity.pid == os.getpid() or process.has_exited():
                continue
            was_killed = process.kill()
            logger.warning(
                "process %d has locked the embedded store for longer than its session %016x lasts, without a "
                "heartbeat for %d ms; %s",
                process.identity.pid,
                session_id,
                peer.silent_ms,
                "it was killed" if was_killed else "it cannot be killed by this user: end it",
            )

    def remove_files(self, session_ids: set[int]) -> None:
        """Delete the files of sessions that have ended."""
        for session_id in session_ids:
            wakeup_file(self._directory, session_id).unlink(missing_ok=True)
            session_file(self._directory, session_id).unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files."""
        self.refresh({})


def session_ids(directory: Path) -> set[int]:
    """The sessions that have a file."""
    found = set()
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(directory):
            with contextlib.suppress(ValueError):
                found.add(int(name, 16))
    return found


def remove_orphans(directory: Path, known: set[int]) -> None:
    """Delete files of dead sessions that are not in the database; call it with the write lock held."""
    for session_id in session_ids(directory) - known:
        path = session_file(directory, session_id)
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # its owner waits for the write lock, to begin the session
            wakeup_file(directory, session_id).unlink(missing_ok=True)
            path.unlink()
