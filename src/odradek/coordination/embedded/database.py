"""The file of the embedded store: nodes, live sessions and the latest events, in SQLite.

    table   | a row is
    --------+------------------------------------------------------------------------------------
    node    | one znode (znodes.Znode), found by path, its siblings by parent
    session | one live session and its time-out; a session that has ended has no row
    event   | one event of a node, in order, for the watches of the other processes
    counter | the zxid of the last transaction

WAL with `synchronous=FULL`: when `commit` returns, the transaction is on the disk; with `is_synced=False` it
is in the page cache, which survives a killed process, but no power cut. Nothing else in this process may open
and close the file itself: POSIX would drop SQLite's locks on it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from odradek.coordination.errors import (
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreNotWritable,
    StoreUnavailable,
)
from odradek.coordination.store import EventType, WatchEvent
from odradek.coordination.znodes import ROOT, Draft, Znode, parent_of

APPLICATION_ID = 0x6F647261  # "odra", identifies our databases, also to `file`
SCHEMA_VERSION = 1
EVENTS_KEPT = 10_000
EVENTS_PRUNED_EVERY = 256
ATTEMPT_MS = 20  # how long SQLite itself tries to get a lock
PAUSE_MS = 2

Result = TypeVar("Result")

_SCHEMA = f"""
CREATE TABLE node (
    path TEXT PRIMARY KEY, parent TEXT, payload BLOB NOT NULL,
    czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL,
    ctime_ms INTEGER NOT NULL, mtime_ms INTEGER NOT NULL, version INTEGER NOT NULL,
    children_created INTEGER NOT NULL, num_children INTEGER NOT NULL, ephemeral_owner INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX node_by_parent ON node (parent, path);
CREATE INDEX node_by_owner ON node (ephemeral_owner) WHERE ephemeral_owner != 0;
CREATE TABLE session (id INTEGER PRIMARY KEY, timeout_ms INTEGER NOT NULL);
CREATE TABLE event (
    position INTEGER PRIMARY KEY, zxid INTEGER NOT NULL, type INTEGER NOT NULL, path TEXT NOT NULL
);
CREATE INDEX event_by_zxid ON event (zxid);
CREATE TABLE counter (zxid INTEGER NOT NULL);
INSERT INTO counter VALUES (0);
INSERT INTO node VALUES ('{ROOT}', NULL, x'', 0, 0, 0, 0, 0, 0, 0, 0, 0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_FIND = """
SELECT payload, czxid, mzxid, pzxid, ctime_ms, mtime_ms, version,
       children_created, num_children, ephemeral_owner
FROM node WHERE path = ?
"""


class Database:
    """One connection to the store's file. Owned by one thread; every error is a `StoreError`."""

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_ms: int,
        is_synced: bool = True,
        while_busy: Callable[[], None] = lambda: None,
    ) -> None:
        """`while_busy` is called again and again while another process locks the file, up to the time-out."""
        self.path = path
        self.busy_timeout_ms = busy_timeout_ms
        self._is_synced = is_synced
        self._while_busy = while_busy
        with self._translated_errors():
            _create_private_file(path)
            self.connection = sqlite3.connect(path, timeout=ATTEMPT_MS / 1000, isolation_level=None)
        try:
            with self._translated_errors():
                self._prepare()
        except StoreUnavailable:
            self.connection.close()
            raise
        self._file_identity = _identity(path)

    def _prepare(self) -> None:
        synchronous = f"PRAGMA synchronous = {'FULL' if self._is_synced else 'OFF'}"
        self._when_not_busy(lambda: self.connection.execute(synchronous))
        self._when_not_busy(self._switch_to_wal)
        if self._when_not_busy(lambda: self._pragma("application_id")) != APPLICATION_ID:
            with self.write_transaction():
                self._create_tables_once()
        if self._when_not_busy(lambda: self._pragma("user_version")) != SCHEMA_VERSION:
            raise StoreDamaged(f"{self.path} was written by a newer version of odradek: use that one")

    def _when_not_busy(self, step: Callable[[], Result]) -> Result:
        """Retry while another process locks the database, until the time-out."""
        deadline = time.monotonic() + self.busy_timeout_ms / 1000
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            # SQLite does not wait in some cases, such as others that switch the same new file to WAL.
            time.sleep(PAUSE_MS / 1000)
            self._while_busy()

    def _switch_to_wal(self) -> None:
        (mode,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            # Refused without an error while another process uses the new file in its first mode.
            busy = sqlite3.OperationalError(f"journal mode {mode}")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise busy

    def _create_tables_once(self) -> None:
        if self._pragma("application_id") == APPLICATION_ID:
            return  # another process created them
        if self._one("SELECT count(*) FROM sqlite_master"):
            raise StoreDamaged(f"{self.path} is a database of another program: choose another path")
        for statement in _SCHEMA.split(";"):
            self.connection.execute(statement)

    # Transactions

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[None]:
        """One consistent view for all reads inside."""
        with self._transaction("BEGIN"):
            yield

    @contextlib.contextmanager
    def write_transaction(self) -> Iterator[None]:
        """The only writer of all processes; on disk when it ends, or nothing happened."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        with self._translated_errors():
            self._when_not_busy(lambda: self._begin(begin))
            try:
                yield
                self._when_not_busy(lambda: self.connection.execute("COMMIT"))
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def _begin(self, begin: str) -> None:
        self.connection.execute(begin)
        try:
            # A deferred transaction takes its lock, and its view, with the first read.
            self.connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error:
            self.connection.execute("ROLLBACK")
            raise

    # Nodes

    def find(self, path: str) -> Znode | None:
        """The node at this path."""
        row = self.connection.execute(_FIND, (path,)).fetchone()
        return None if row is None else Znode(*row)

    def children(self, path: str) -> list[str]:
        """The names of a node's children, in order."""
        prefix_length = len(path) if path == ROOT else len(path) + 1
        rows = self.connection.execute("SELECT path FROM node WHERE parent = ? ORDER BY path", (path,))
        return [child[prefix_length:] for (child,) in rows]

    def ephemerals(self, session_id: int) -> list[str]:
        """The paths of a session's ephemeral nodes."""
        query = "SELECT path FROM node WHERE ephemeral_owner = ? AND ephemeral_owner != 0 ORDER BY path"
        return [path for (path,) in self.connection.execute(query, (session_id,))]

    def save(self, draft: Draft) -> None:
        """Write the changes of an accepted draft, and its events."""
        for path, node in draft.changed.items():
            if node is None:
                self.connection.execute("DELETE FROM node WHERE path = ?", (path,))
            else:
                self._save_node(path, node)
        rows = [(draft.zxid, int(event.type), event.path) for event in draft.events]
        self.connection.executemany("INSERT INTO event (zxid, type, path) VALUES (?, ?, ?)", rows)
        self.connection.execute("UPDATE counter SET zxid = ?", (draft.zxid,))
        if draft.zxid % EVENTS_PRUNED_EVERY == 0:
            self.connection.execute("DELETE FROM event WHERE zxid <= ?", (draft.zxid - EVENTS_KEPT,))

    def _save_node(self, path: str, node: Znode) -> None:
        parent = None if path == ROOT else parent_of(path)
        row = (path, parent, node.payload, node.czxid, node.mzxid, node.pzxid, node.ctime_ms, node.mtime_ms,
               node.version, node.children_created, node.num_children, node.ephemeral_owner)  # fmt: skip
        self.connection.execute(
            "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row
        )

    # Order of transactions

    def zxid(self) -> int:
        """The last transaction in this view."""
        return self._one("SELECT zxid FROM counter")

    def events_since(self, zxid: int) -> list[WatchEvent] | None:
        """All events after this transaction, in order; None if they are no longer kept."""
        if self.zxid() - zxid > EVENTS_KEPT:
            return None
        query = "SELECT type, path FROM event WHERE zxid > ? ORDER BY position"
        rows = self.connection.execute(query, (zxid,))
        return [WatchEvent(EventType(event_type), path) for event_type, path in rows]

    def data_version(self) -> int:
        """Another number than last time if another connection has committed since; costs microseconds."""
        with self._translated_errors():
            return self._when_not_busy(lambda: self._pragma("data_version"))

    # Sessions

    def session_timeouts_ms(self) -> dict[int, int]:
        """Every live session with its time-out."""
        return dict(self.connection.execute("SELECT id, timeout_ms FROM session").fetchall())

    def has_session(self, session_id: int) -> bool:
        """Whether this session has not been expired."""
        return bool(self._one("SELECT count(*) FROM session WHERE id = ?", session_id))

    def add_session(self, session_id: int, timeout_ms: int) -> None:
        """From now on its ephemeral nodes may exist."""
        self.connection.execute("INSERT INTO session VALUES (?, ?)", (session_id, timeout_ms))

    def remove_session(self, session_id: int) -> None:
        """From now on every write of it is refused."""
        self.connection.execute("DELETE FROM session WHERE id = ?", (session_id,))

    # The file itself

    def is_still_there(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return _identity(self.path) == self._file_identity

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()

    def _one(self, query: str, *arguments: object) -> int:
        (value,) = self.connection.execute(query, arguments).fetchone()
        return int(value)

    def _pragma(self, name: str) -> int:
        return self._one(f"PRAGMA {name}")

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise error_of_sqlite(error, self.path) from error
        except OSError as error:
            raise error_of_system(error, self.path) from error


def error_of_sqlite(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    """SQLite's error as a StoreError, with advice."""
    match getattr(error, "sqlite_errorcode", -1) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"{path} is locked: another process writes to it for long, or was stopped while writing"
            )
        case sqlite3.SQLITE_FULL:
            return StoreFull(_full(path))
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreDamaged(
                f"{path} is damaged ({error}); restore a copy, or move it away to start empty"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return StoreNotWritable(f"{path} and its directory must be writable by this user ({error})")
        case _:
            return StoreUnavailable(f"{path}: {error}; check the disk")


def _create_private_file(path: Path) -> None:
    """The store has password hashes: only its owner may read it. SQLite uses the same mode for side files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Closed only when just created: closing an existing file would drop the locks of our other connections.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def error_of_system(error: OSError, path: Path) -> StoreUnavailable:
    """The system's error as a StoreError."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(_full(path))
    return StoreNotWritable(f"{path}: {error.strerror}; check the path and its permissions")


def _full(path: Path) -> str:
    return f"{path}: the disk is full; free some space"
