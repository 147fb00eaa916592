# cython: annotation_typing=False
"""The file seam: every call that the log makes to the operating system, and file handles bounded in number.

Three layers, thin each: `FileSystem` has one method per system call, so that a test can make any of them
fail; `HandleCache` keeps the most recently used descriptors open; `LogFile` is one file that grows at its
end. Compiled by Cython (files.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import resource
from collections import OrderedDict

from odradek.log.disk_room import take_room
from odradek.log.page_cache import is_cached

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    # At the end of the process Python's own names are gone before the last files are.
    from cython.cimports.odradek.common.octets import octets_of
    from cython.cimports.posix.unistd import close as _close
    from cython.cimports.posix.unistd import pwrite as _pwrite
else:
    _close = os.close

Buffer = bytes | bytearray | memoryview

NO_SPACE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})

_COPY_CHUNK = 1 << 20
WARM_PIECE_BYTES = 1 << 20
"""What is read again when a page of it is missing."""
STEPS_FROM_BYTES = 4 << 20
MAX_STEP_BYTES = 4 << 20
STEP_SHARE = 4
"""A file that grows in steps takes a quarter of its length ahead, at most 4 MiB; a small one nothing."""
_NO_STEPS = 1 << 62


class OpenFile:
    """A descriptor that is closed when its last user lets go of it.

    Whoever reads, syncs or sends holds a reference, in any thread, so a file that leaves the cache or is
    deleted meanwhile stays readable, and its number is not reused under a reader's hands.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        """For `os.sendfile` and whatever else wants a descriptor."""
        return self.fd

    def __del__(self) -> None:
        _close(self.fd)


class FileRange:
    """A run of bytes of a file, ready for `os.sendfile`: it keeps its file open for as long as it is held."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def read(self) -> bytes:
        """The bytes themselves, for those who cannot send a file; may block on a cold file."""
        return os.pread(self.file.fd, self.length, self.position)


class FileSystem:
    """The operating system as the log sees it. Stateless, so any thread may call it; errors are `OSError`."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open for reading and writing."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OpenFile(os.open(path, flags, 0o644))

    def open_read_only(self, path: str) -> OpenFile:
        """Open for reading."""
        return OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def read_at(self, file: OpenFile, length: int, position: int) -> bytes:
        """At most `length` bytes; fewer only at the end of the file."""
        return os.pread(file.fd, length, position)

    def read_into(self, file: OpenFile, buffer: memoryview, position: int) -> int:
        """Fill the buffer, as far as the file goes; the number of bytes."""
        filled = os.preadv(file.fd, [buffer], position)
        while filled < len(buffer) and (more := os.preadv(file.fd, [buffer[filled:]], position + filled)):
            filled += more
        return filled

    def warm(self, file: OpenFile, position: int, length: int) -> None:
        """Have a run of the file in the page cache; nothing is copied, so it costs a tenth of a read.

        Of what is there already nothing is read: often a kernel has taken only a few pages away.
        """
        for start in range(position, position + length, WARM_PIECE_BYTES):
            end = min(start + WARM_PIECE_BYTES, position + length)
            if not is_cached(file.fd, start, end - start):
                while start < end and (sent := os.sendfile(_nowhere(), file.fd, start, end - start)):
                    start += sent

    def is_cached(self, file: OpenFile, position: int, length: int) -> bool:
        """Whether a run of the file is surely in the page cache."""
        return is_cached(file.fd, position, length)

    def write_at(self, file: OpenFile, payload: Buffer, position: int) -> None:
        """Write all of it, or raise with the file in an unknown state after `position`."""
        written = 0
        size = len(payload)
        if cython.compiled and isinstance(payload, memoryview):
            fd = file.fd
            octets = octets_of(payload)
            with cython.nogil:
                written = _pwrite(fd, octets, size, position)
            # Whatever is wrong happens again below, where it is told.
            written = max(written, 0)
        while written < size:
            written += os.pwrite(file.fd, memoryview(payload)[written:], position + written)

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut or extend with zeroes."""
        os.ftruncate(file.fd, size)

    def is_shared(self, path: str) -> bool:
        """Whether the file has another name somewhere, as after `odradek log fork`."""
        return os.stat(path).st_nlink > 1

    def reserve(self, file: OpenFile, size: int) -> None:
        """Take the disk space of `size` bytes now; the file grows to it with zeroes."""
        os.posix_fallocate(file.fd, 0, size)

    def take_room(self, file: OpenFile, position: int, length: int) -> None:
        """Take the disk space of a run that is still to be written; the file gets no longer."""
        take_room(file.fd, position, length)

    def sync(self, file: OpenFile) -> None:
        """Return when the bytes are on the disk."""
        os.fsync(file.fd)

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory survive a power cut."""
        directory = OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        os.fsync(directory.fd)

    def size(self, path: str) -> int:
        """Length of a file in bytes."""
        return os.stat(path).st_size

    def exists(self, path: str) -> bool:
        """Whether there is anything under that name."""
        return os.path.lexists(path)

    def usable_bytes(self, path: str) -> int:
        """How much more the disk under that path takes."""
        room = os.statvfs(path)
        return room.f_frsize * room.f_bavail

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))

    def is_directory(self, path: str) -> bool:
        """Whether the path leads to a directory."""
        return os.path.isdir(path)

    def make_directory(self, path: str) -> None:
        """One directory, whose parent is there."""
        os.mkdir(path)

    def rename(self, source: str, target: str) -> None:
        """Atomic within a file system; an existing target file is replaced."""
        os.rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is no error, since removal is what was wanted."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def copy_modification_time(self, source: str, target: str) -> None:
        """Let a file look as old as another."""
        times = os.stat(source)
        os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def read_file(self, path: str) -> bytes:
        """A small file, whole."""
        file = self.open_read_only(path)
        chunks = []
        position = 0
        while chunk := self.read_at(file, 1 << 20, position):
            chunks.append(chunk)
            position += len(chunk)
        return b"".join(chunks)

    def write_file_atomically(self, path: str, content: bytes) -> None:
        """Replace a small file so that a crash leaves the old one or the new one, both whole."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        self.truncate(file, 0)
        self.write_at(file, content, 0)
        self.sync(file)
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))


@functools.cache
def _nowhere() -> int:
    """A descriptor that takes everything; open for as long as the process lives."""
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)


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
        """Mark as just used; while there is room for all, who was used last does not matter."""
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
        """Close a file now, unless somebody still holds it."""
        self._open.pop(file, None)
        file.handle_dropped()


def default_handle_limit() -> int:
    """Half of what the process may open; the other half is for sockets."""
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
    """One file that only grows at its end; opened when needed, closed when others are needed more.

    One writer: the owner of the segment. Any thread may read below `size`.
    """

    __slots__ = ("_handle", "_room_end", "directory", "name", "size")

    def __init__(self, directory: PartitionDirectory, name: str, size: int) -> None:
        self.directory = directory
        self.name = name
        self.size = size
        self._room_end = _NO_STEPS
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
        """From now on, take disk space for many appends at once, which makes each a fifth cheaper (ADR 8).

        Whoever ends the growth calls `give_back_room`.
        """
        self._room_end = max(self.size, STEPS_FROM_BYTES)

    def give_back_room(self) -> None:
        """Let others have the disk space that was taken and not needed, by this process or an earlier one."""
        self.directory.files.truncate(self.handle(), self.size)

    def _take_room(self, position: int, end: int) -> None:
        self._room_end = end + min(end // STEP_SHARE, MAX_STEP_BYTES)
        # A disk that has no such step left may have room for the append, which finds its own; whatever else
        # is wrong, the append will meet it too.
        with contextlib.suppress(OSError):
            self.directory.files.take_room(self.handle(), position, self._room_end - position)

    def append(self, payload: Buffer) -> int:
        """Write at the end; the position where it begins. After an error nothing was appended."""
        position = self.size
        end = position + len(payload)
        if end > self._room_end:
            self._take_room(position, end)
        try:
            self.directory.handles.files.write_at(self.handle(), payload, position)
        except OSError:
            # Half a batch may be there. The size did not move, so it is invisible and the next append
            # overwrites it; cutting it off keeps the file whole for everyone else, if the disk still can.
            with contextlib.suppress(OSError):
                self.directory.files.truncate(self.handle(), position)
            raise
        self.size = end
        return position

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
        """A part of the file to be sent."""
        return FileRange(self.handle(), position, length)

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes; of a file that a fork shares, only this side's."""
        self.unshare(size)
        self.directory.files.truncate(self.handle(), size)
        self.size = size

    def unshare(self, size: int) -> None:
        """Have the first `size` bytes to ourselves before they are followed by others; may block."""
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
        """Return when everything appended is on the disk; may block, so not on the event loop."""
        self.directory.files.sync(self.handle())

    def rename(self, name: str) -> None:
        """Give it another name in its directory; an open handle stays good."""
        self.directory.files.rename(self.path, self.directory.join(name))
        self.name = name

    def close(self) -> None:
        """Let go of the handle; a later read opens it again."""
        self.directory.handles.drop(self)

    def handle_dropped(self) -> None:
        """The cache's word that this file is no longer counted as open."""
        self._handle = None
