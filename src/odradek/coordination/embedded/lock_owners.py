"""Which processes hold a write lock on the files of a SQLite database.

Read from /proc/locks. fcntl could ask the kernel for one lock, but needs a descriptor of the file, and
closing any descriptor of a file drops all locks that SQLite holds on it in this process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

LOCKS = Path("/proc/locks")


def write_lock_owners(database: Path) -> set[int]:
    """The pids with an exclusive lock on the database or its index; empty where the system does not say."""
    inodes = set()
    for path in (database, database.with_name(database.name + "-shm")):
        try:
            inodes.add(os.stat(path).st_ino)
        except OSError:
            continue
    try:
        lines = LOCKS.read_text().splitlines()
    except OSError:
        return set()
    return parse_write_lock_owners(lines, inodes)


def parse_write_lock_owners(lines: Iterable[str], inodes: set[int]) -> set[int]:
    """The pids of the lines for these inodes.

    `1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120` is number, kind, mode, type, pid, device:inode, range.
    The device is not compared: file systems in layers show another one here than in `stat`.
    """
    owners = set()
    for line in lines:
        fields = line.split()
        if len(fields) == 8 and fields[1] == "POSIX" and fields[3] == "WRITE":
            inode = fields[5].rpartition(":")[2]
            if int(inode) in inodes:
                owners.add(int(fields[4]))
    return owners
