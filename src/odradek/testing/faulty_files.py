"""A real file system with injected faults: no space, a failing disk, a crash at any call."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from odradek.log.files.file_system import Buffer, FileSystem, OpenFile

CHANGES = frozenset(
    {"open", "write_at", "truncate", "reserve", "make_directory", "rename", "remove", "remove_directory"}
)


class Crashed(BaseException):
    """A simulated crash of the process; not caught by `except Exception`."""


class FaultyFiles(FileSystem):
    """Behaves as FileSystem until `fault` returns an error.

    `fault(call, path)` is called before every call with the method's name; returns an errno, or 0 for none.
    `crash_after(n)` crashes at the n-th change, in the middle of it if it is a write.
    """

    __slots__ = ("changes_left", "fault", "free_bytes", "synced")

    def __init__(self) -> None:
        self.fault: Callable[[str, str], int] = lambda call, path: 0
        self.free_bytes: int | None = None
        self.changes_left: int | None = None
        self.synced: list[str] = []

    def crash_after(self, changes: int) -> None:
        """Let that many changes happen, and half of the next one."""
        self.changes_left = changes

    def _check(self, call: str, path: str) -> None:
        code = self.fault(call, path)
        if code:
            raise OSError(code, os.strerror(code), path)
        if self.changes_left is not None and call in CHANGES:
            if self.changes_left <= 0:
                raise Crashed(call, path)
            self.changes_left -= 1

    def _path(self, file: OpenFile) -> str:
        return os.readlink(f"/proc/self/fd/{file.fd}")

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """As the real one; counts as a change only when it creates."""
        if create:
            self._check("open", path)
        return FileSystem.open(self, path, create=create)

    def read_at(self, file: OpenFile, length: int, position: int) -> bytes:
        """As the real one."""
        self._check("read_at", self._path(file))
        return FileSystem.read_at(self, file, length, position)

    def read_into(self, file: OpenFile, buffer: memoryview, position: int) -> int:
        """As the real one."""
        self._check("read_into", self._path(file))
        return FileSystem.read_into(self, file, buffer, position)

    def write_at(self, file: OpenFile, payload: Buffer, position: int, zeroes: int = 0) -> None:
        """As the real one, but a full disk writes what fits, and a crash half of it."""
        try:
            self._check("write_at", self._path(file))
        except Crashed:
            FileSystem.write_at(self, file, memoryview(payload)[: len(payload) // 2], position)
            raise
        if self.free_bytes is not None:
            grows_by = max(0, position + len(payload) - os.fstat(file.fd).st_size)
            if grows_by > self.free_bytes:
                fitting = len(payload) - (grows_by - self.free_bytes)
                FileSystem.write_at(self, file, memoryview(payload)[: max(0, fitting)], position)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            zeroes = min(zeroes, self.free_bytes - grows_by)
            self.free_bytes -= grows_by + zeroes
        FileSystem.write_at(self, file, payload, position, zeroes)

    def truncate(self, file: OpenFile, size: int) -> None:
        """As the real one."""
        self._check("truncate", self._path(file))
        FileSystem.truncate(self, file, size)

    def sync(self, file: OpenFile) -> None:
        """As the real one, and recorded in `synced`."""
        path = self._path(file)
        self._check("sync", path)
        self.synced.append(path)

    def sync_directory(self, path: str) -> None:
        """As the real one, and recorded in `synced`."""
        self._check("sync_directory", path)
        self.synced.append(path)

    def usable_bytes(self, path: str) -> int:
        """The free space set by the test, if it is set."""
        return FileSystem.usable_bytes(self, path) if self.free_bytes is None else self.free_bytes

    def make_directory(self, path: str) -> None:
        """As the real one."""
        self._check("make_directory", path)
        FileSystem.make_directory(self, path)

    def rename(self, source: str, target: str) -> None:
        """As the real one."""
        self._check("rename", source)
        FileSystem.rename(self, source, target)

    def remove(self, path: str) -> None:
        """As the real one."""
        self._check("remove", path)
        FileSystem.remove(self, path)
