"""Who locks a database, as the kernel lists it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from odradek.coordination.embedded.lock_owners import parse_write_lock_owners, write_lock_owners

LOCKS = """\
1: POSIX  ADVISORY  WRITE 10 fe:00:700 120 120
1: -> POSIX  ADVISORY  WRITE 11 fe:00:700 120 120
2: POSIX  ADVISORY  READ  12 fe:00:700 123 123
3: FLOCK  ADVISORY  WRITE 13 fe:00:700 0 EOF
4: POSIX  ADVISORY  WRITE 14 00:1b:701 1073741826 1073742335
5: POSIX  ADVISORY  WRITE 15 fe:00:702 120 120
6: OFDLCK ADVISORY  WRITE -1 fe:00:700 120 120
"""


def test_owners_are_those_of_exclusive_posix_locks_on_these_files() -> None:
    assert parse_write_lock_owners(LOCKS.splitlines(), {700, 701}) == {10, 14}


def test_the_process_inside_a_write_transaction_is_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE a (b)")
    script = (
        "import sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "database.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"\n"
        assert write_lock_owners(path) == {owner.pid}
    assert write_lock_owners(path) == set()
    database.close()


def test_a_file_that_is_not_there_has_no_owner(tmp_path: Path) -> None:
    assert write_lock_owners(tmp_path / "none.db") == set()
