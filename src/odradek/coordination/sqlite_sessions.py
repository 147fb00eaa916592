"""Session files: a lock that detects dead processes, and a heartbeat that detects hanging ones.

    DATABASE-sessions/<session id, 16 hex digits>

    bytes | what
    ------+---------------------------------------------------------------------------
    0-7   | heartbeats so far, little endian; grows while the owner's event loop runs

The owner holds an exclusive `flock` on its file. The kernel frees it when the process dies, so that
the others notice at once. A session that keeps its lock without heartbeats for its time-out expires, too.
Only on a local file system, as SQLite's WAL.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import weakref
from collections.abc import Mapping
from pathlib import Path

LONGEST_TICK_NS = 100_000_000
"""Linux sets file times by a clock with a resolution of 1-10 ms."""


def session_file(directory: Path, session_id: int) -> Path:
    """Where a session's file is."""
    return directory / f"{session_id:016x}"


class OwnSession:
    """The session of this process: holds the lock, sends heartbeats. Owned by the store's thread."""

    def __init__(self, directory: Path, session_id: int) -> None:
        self.path = session_file(directory, session_id)
        self._fd = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.beat(0)
        _own_sessions.add(self)

    def beat(self, count: int) -> None:
        """Send a heartbeat."""
        os.pwrite(self._fd, count.to_bytes(8, "little"), 0)

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
    """Another process's session, as seen from here."""

    def __init__(self, fd: int, timeout_ms: int) -> None:
        self.fd = fd
        self.timeout_ms = timeout_ms
        self.last_beat = b""
        self.silent_ms = 0

    def holds_lock(self) -> bool:
        """Whether its owner is alive. Tried with a shared lock, so that several processes can check."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        return False

    def is_silent_for(self, elapsed_ms: int) -> bool:
        """Whether the time-out has passed without a heartbeat, counting only observed time."""
        beat = os.pread(self.fd, 8, 0)
        if beat != self.last_beat:
            self.last_beat, self.silent_ms = beat, 0
            return False
        self.silent_ms += elapsed_ms
        return self.silent_ms > self.timeout_ms


class Peers:
    """All other sessions of the store. Owned by the store's thread."""

    def __init__(self, directory: Path, *, longest_step_ms: int) -> None:
        self._directory = directory
        # While this process was stopped, heartbeats could not be observed.
        self._longest_step_ms = longest_step_ms
        self._peers: dict[int, _Peer] = {}
        self._without_file: set[int] = set()
        self._looked_ms: int | None = None
        self._alone_since_ns: int | None = None

    def may_be_others(self, own: OwnSession) -> bool:
        """Whether other sessions have a file here, or may have had since the last call; costs microseconds.

        The file is created before its session: the database needs to be read only if this is true.
        """
        try:
            changed_ns = os.stat(self._directory).st_mtime_ns
            if changed_ns == self._alone_since_ns:
                return False
            is_alone = os.listdir(self._directory) == [own.path.name]
        except OSError:
            return True  # the directory was removed: the caller checks the database
        # A second change within one tick of the file system's clock cannot be distinguished from the first.
        if is_alone and time.time_ns() - changed_ns > LONGEST_TICK_NS:
            self._alone_since_ns = changed_ns
        return True

    def refresh(self, timeouts_ms: Mapping[int, int]) -> None:
        """Watch exactly these sessions from now on."""
        for session_id in self._peers.keys() - timeouts_ms.keys():
            os.close(self._peers.pop(session_id).fd)
        self._without_file = set()
        for session_id in timeouts_ms.keys() - self._peers.keys():
            self._open(session_id, timeouts_ms[session_id])

    def _open(self, session_id: int, timeout_ms: int) -> None:
        try:
            fd = os.open(session_file(self._directory, session_id), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._without_file.add(session_id)
            return
        self._peers[session_id] = _Peer(fd, timeout_ms)

    def __len__(self) -> int:
        return len(self._peers)

    def find_dead(self, now_ms: int) -> set[int]:
        """The sessions whose owner died or hangs."""
        elapsed_ms = 0 if self._looked_ms is None else now_ms - self._looked_ms
        elapsed_ms = min(elapsed_ms, self._longest_step_ms)
        self._looked_ms = now_ms
        dead = {
            session_id
            for session_id, peer in self._peers.items()
            if not peer.holds_lock() or peer.is_silent_for(elapsed_ms)
        }
        return dead | self._without_file

    def remove_files(self, session_ids: set[int]) -> None:
        """Delete the files of sessions that have ended."""
        for session_id in session_ids:
            session_file(self._directory, session_id).unlink(missing_ok=True)

    def close(self) -> None:
        """Close all files."""
        self.refresh({})


def remove_orphans(directory: Path, known: set[int]) -> None:
    """Delete files of sessions that are not in the database; call it with the write lock held."""
    names = {session_file(directory, session_id).name for session_id in known}
    for name in set(os.listdir(directory)) - names:
        with contextlib.suppress(FileNotFoundError):
            (directory / name).unlink()
