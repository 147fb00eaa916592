# cython: annotation_typing=False
"""The files of a log: append-only files, and a cache of open descriptors.

`HandleCache` keeps the most recently used descriptors open; `LogFile` is one file, which allocates disk space
and page cache in steps. Compiled by Cython (log_file.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import contextlib
import resource
from collections import OrderedDict

from odradek.log.files.file_calls import MAX_ZEROES
from odradek.log.files.file_system import Buffer, FileRange, FileSystem, OpenFile

_COPY_CHUNK = 1 << 20
STEPS_FROM_BYTES = 4 << 20
MAX_STEP_BYTES = 4 << 20
STEP_SHARE = 4
"""A file that grows in steps takes a quarter of its length ahead, at most 4 MiB; a small one nothing."""
PAVED_BYTES = MAX_ZEROES
"""It is written up to a multiple of this, with zeroes behind its last byte (ADR 9)."""
_NO_STEPS = 1 << 62


class HandleCache:
    """Keeps at most `limit` files open, the most recently used ones.

    Every step is one atomic operation of a dict, so the pool's threads may read through it while the
    event loop does. Two threads that open one file at once get a handle each; the loser's is closed in time.
    """

    __slots__ = ("_open", "files", "limit")

    def __init__(self, files: FileSystem, limit: int) -> None:
        self.files = files
        self.limit = limit
        self._open: OrderedDict[LogFile, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def touch(self, file: LogFile) -> None:
        """Mark as just used; not needed while all files fit into the cache."""
        if 2 * len(self._open) > self.limit:
            with contextlib.suppress(
                KeyError
            ):  # closed by another thread since; the caller has its reference
                self._open.move_to_end(file)

    def admit(self, file: LogFile) -> None:
        """Count a file that was just opened, and close the least recently used above the limit."""
        self._open[file] = None
        while len(self._open) > self.limit:
            oldest, _ = self._open.popitem(last=False)
            oldest.handle_dropped()

    def drop(self, file: LogFile) -> None:
        """Close a file now, unless it is still referenced."""
        self._open.pop(file, None)
        file.handle_dropped()


def default_handle_limit() -> int:
    """Half of the process's limit of open files; the other half is for sockets."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, min(soft_limit // 2, 65_536))


class PartitionDirectory:
    """The path of a partition, shared by all its files, so that renaming the directory is one assignment."""

    __slots__ = ("handles", "path")

    def __init__(self, path: str, handles: HandleCache) -> None:
        self.path = path
        self.handles = handles

    @property
    def files(self) -> FileSystem:
        """The file system that this directory is on."""
        return self.handles.files

    def join(self, name: str) -> str:
        """The path of a file in it."""
        return f"{self.path}/{name}"


class LogFile:
    """One append-only file; opened when needed, closed when the cache is full.

    One writer: the owner of the segment. Any thread may read below `size`.
    """

    __slots__ = ("_handle", "_paved_end", "_room_end", "_size_at_last_look", "directory", "name", "size")

    def __init__(self, directory: PartitionDirectory, name: str, size: int) -> None:
        self.directory = directory
        self.name = name
        self.size = size
        self._room_end = _NO_STEPS
        self._paved_end = _NO_STEPS
        self._size_at_last_look = -1
        self._handle: OpenFile | None = None

    @property
    def path(self) -> str:
        """Where it is now; renames move it."""
        return self.directory.join(self.name)

    def handle(self) -> OpenFile:
        """The open file; hold the result for as long as its descriptor is in use."""
        handle = self._handle
        if handle is not None:
            self.directory.handles.touch(self)
            return handle
        handle = self._handle = self.directory.files.open(self.path)
        self.directory.handles.admit(self)
        return handle

    def create(self) -> None:
        """Make the file, empty."""
        handle = self._handle = self.directory.files.open(self.path, create=True)
        self.directory.handles.admit(self)
        self.directory.files.truncate(handle, 0)
        self.size = 0

    def grow_in_steps(self) -> None:
        """From now on, allocate disk space and page cache for many appends at once (ADR 8 and 9).

        The file is then longer than `size`. Call `give_back_room` when the file stops growing.
        """
        self._room_end = self._paved_end = max(self.size, STEPS_FROM_BYTES)

    def reserve(self, size: int) -> None:
        """Allocate the disk space of `size` bytes now."""
        self.directory.files.reserve(self.handle(), size)
        self._room_end = self._paved_end = _NO_STEPS

    def give_back_room(self) -> None:
        """Release the disk space that was allocated and not used, by this process or an earlier one."""
        self.directory.files.truncate(self.handle(), self.size)
        self._steps_begin_anew()

    def give_back_when_idle(self) -> None:
        """Release it if nothing was appended since the last call, for other programs that read the files."""
        has_steps = max(self.size, STEPS_FROM_BYTES) < self._paved_end < _NO_STEPS
        if has_steps and self.size == self._size_at_last_look:
            self.give_back_room()
        self._size_at_last_look = self.size

    def _steps_begin_anew(self) -> None:
        if self._paved_end != _NO_STEPS:
            self.grow_in_steps()

    def append(self, payload: Buffer) -> int:
        """Write at the end; the position where it begins. After an error nothing is appended."""
        position = self.size
        end = position + len(payload)
        try:
            if end > self._paved_end:
                self._write_and_pave(payload, position, end)
            else:
                self.directory.handles.files.write_at(self.handle(), payload, position)
        except OSError:
            # A part of a batch may be written. The size did not change, so it is hidden, and the next append
            # overwrites it; truncating keeps the file valid for other readers, if the disk still works.
            with contextlib.suppress(OSError):
                self.directory.files.truncate(self.handle(), position)
            self._steps_begin_anew()
            raise
        self.size = end
        return position

    def _write_and_pave(self, payload: Buffer, position: int, end: int) -> None:
        """Write, with zeroes after it: the kernel then makes few large pages, which later appends fill."""
        paved_end = (end + PAVED_BYTES - 1) // PAVED_BYTES * PAVED_BYTES
        if paved_end > self._room_end:
            self._take_room(position, paved_end)
        self.directory.handles.files.write_at(self.handle(), payload, position, paved_end - end)
        self._paved_end = paved_end

    def _take_room(self, position: int, end: int) -> None:
        self._room_end = end + min(end // STEP_SHARE, MAX_STEP_BYTES)
        # A disk without space for a step may still have enough for the append, which allocates its own; any
        # other error will occur in the append, too.
        with contextlib.suppress(OSError):
            self.directory.files.take_room(self.handle(), position, self._room_end - position)

    def read(self, position: int, length: int) -> bytes:
        """At most `length` bytes, none past the end."""
        length = min(length, self.size - position)
        if length <= 0:
            return b""
        return self.directory.files.read_at(self.handle(), length, position)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill the buffer from `position` on; the number of bytes, fewer only at the end."""
        wanted = buffer[: max(0, self.size - position)]
        return self.directory.files.read_into(self.handle(), wanted, position) if len(wanted) else 0

    def range(self, position: int, length: int) -> FileRange:
        """A range of the file to be sent."""
        return FileRange(self.handle(), position, length)

    def truncate(self, size: int) -> None:
        """Truncate to `size` bytes; a file that a fork shares is copied first."""
        self.unshare(size)
        self.directory.files.truncate(self.handle(), size)
        self.size = size
        self._steps_begin_anew()

    def unshare(self, size: int) -> None:
        """Copy the first `size` bytes if a fork shares the file; may block."""
        files = self.directory.files
        if not files.is_shared(self.path):
            return
        temporary, shared = f"{self.path}.tmp", self.handle()
        copy = files.open(temporary, create=True)
        files.truncate(copy, 0)
        for position in range(0, size, _COPY_CHUNK):
            files.write_at(copy, files.read_at(shared, min(_COPY_CHUNK, size - position), position), position)
        files.sync(copy)
        files.rename(temporary, self.path)
        files.sync_directory(self.directory.path)
        self.close()

    def sync(self) -> None:
        """Return when everything appended is on disk; may block, so not on the event loop."""
        self.directory.files.sync(self.handle())

    def rename(self, name: str) -> None:
        """Rename the file within its directory; an open handle remains valid."""
        self.directory.files.rename(self.path, self.directory.join(name))
        self.name = name

    def close(self) -> None:
        """Release the handle; a later read opens it again."""
        self.directory.handles.drop(self)

    def handle_dropped(self) -> None:
        """Called by the cache when this file no longer counts as open."""
        self._handle = None
