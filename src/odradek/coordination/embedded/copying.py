"""Copies the file of an embedded store, for a broker on a copy of the logs; the original may be in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from odradek.coordination.embedded.database import APPLICATION_ID, error_of_sqlite, error_of_system
from odradek.coordination.errors import StoreUnavailable

# Sessions and their ephemeral nodes belong to the brokers of the original. Events are of no use, either.
_WITHOUT_SESSIONS = """
BEGIN;
UPDATE node SET num_children = num_children
    - (SELECT count(*) FROM node AS child WHERE child.parent = node.path AND child.ephemeral_owner != 0)
    WHERE path IN (SELECT parent FROM node WHERE ephemeral_owner != 0);
DELETE FROM node WHERE ephemeral_owner != 0;
DELETE FROM session;
DELETE FROM event;
COMMIT;
"""


def copy_store(source: Path, target: Path) -> None:
    """Make `target` a copy of the store as it is at one moment, without sessions; StoreUnavailable if not.

    Not in a process that has the source open as a store: closing the file would drop that one's locks.
    """
    path = source
    try:
        uri = f"{source.absolute().as_uri()}?mode=ro"
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        with (
            contextlib.closing(sqlite3.connect(uri, uri=True)) as original,
            contextlib.closing(sqlite3.connect(target)) as copy,
        ):
            (application_id,) = original.execute("PRAGMA application_id").fetchone()
            if application_id != APPLICATION_ID:
                raise StoreUnavailable(f"{source} is not a store of odradek")
            original.backup(copy)
            path = target
            copy.executescript(_WITHOUT_SESSIONS)
    except sqlite3.Error as error:
        raise error_of_sqlite(error, path) from error
    except OSError as error:
        raise error_of_system(error, path) from error
