"""Disks on which what was not synced can be lost, as by a power cut.

The files are real ones, in a temporary directory. The journal of the file system is taken as always written:
names and sizes survive, and so does everything that was synced; of the rest a power cut keeps a part.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import NamedTuple

from odradek.log.files.file_system import Buffer, FileSystem, OpenFile


class _Extent(NamedTuple):
    """How far a file was written, and how far it was synced."""

    written: int
    synced: int


_NOTHING = _Extent(0, 0)


class SimulatedDisk(FileSystem):
    """The files of one broker over all its restarts. Owned by the simulation."""

    __slots__ = ("_extents", "root")

    def __init__(self, root: Path) -> None:
        self.root = root
        self._extents: dict[int, _Extent] = {}

    def write_at(self, file: OpenFile, payload: Buffer, position: int, zeroes: int = 0) -> None:
        """As the real one, without preallocation, and recorded as not synced."""
        FileSystem.write_at(self, file, payload, position)
        inode = os.fstat(file.fd).st_ino
        extent = self._extents.get(inode, _NOTHING)
        end = position + len(payload)
        self._extents[inode] = _Extent(max(extent.written, end), min(extent.synced, position))

    def truncate(self, file: OpenFile, size: int) -> None:
        """As the real one."""
        FileSystem.truncate(self, file, size)
        inode = os.fstat(file.fd).st_ino
        extent = self._extents.get(inode, _NOTHING)
        self._extents[inode] = _Extent(min(extent.written, size), min(extent.synced, size))

    def sync(self, file: OpenFile) -> None:
        """Everything written so far survives a power cut."""
        inode = os.fstat(file.fd).st_ino
        extent = self._extents.get(inode, _NOTHING)
        self._extents[inode] = _Extent(extent.written, extent.written)

    def sync_directory(self, path: str) -> None:
        """Names survive in any case."""

    def cut_power(self, seeded: random.Random) -> int:
        """Lose a part of what was not synced, in segment files; returns the number of bytes lost."""
        lost = 0
        for path in sorted(self.root.rglob("*.log")):
            status = path.stat()
            extent = self._extents.get(status.st_ino, _NOTHING)
            if extent.written > extent.synced:
                kept = seeded.randint(extent.synced, extent.written)
                os.truncate(path, kept)
                lost += extent.written - kept
                self._extents[status.st_ino] = _Extent(kept, min(kept, extent.synced))
        return lost

    def wipe(self) -> None:
        """Replace the disk by an empty one."""
        for path in sorted(self.root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        self._extents.clear()
