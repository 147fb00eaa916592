# cython: annotation_typing=False
"""Every call of the log to the operating system, one method each, so that a test can make any of them fail.

Compiled by Cython (file_system.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os

import cython

from odradek.log.files.page_cache import is_cached
from odradek.log.files.preallocation import take_room

if cython.compiled:
    # At the end of the process Python's own names may be gone before the last files are closed.
    from cython.cimports.odradek.log.files.file_calls import write_run
    from cython.cimports.posix.unistd import close as _close
else:
    from odradek.log.files.file_calls import write_run

    _close = os.close

Buffer = bytes | bytearray | memoryview

NO_SPACE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})

LOAD_PIECE_BYTES = 1 << 20
"""What is read again if a page of it is missing."""


class OpenFile:
    """A descriptor that is closed with its last reference.

    Every reader, sync or send holds a reference, in any thread, so that a file that leaves the cache or is
    deleted meanwhile stays readable, and its descriptor is not reused too early.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        """For `os.sendfile` and other calls that need a descriptor."""
        return self.fd

    def __del__(self) -> None:
        _close(self.fd)


class FileRange:
    """A range of bytes of a file for `os.sendfile`; it keeps its file open."""

    __slots__ = ("file", "length", "position")

    def __init__(self, file: OpenFile, position: int, length: int) -> None:
        self.file = file
        self.position = position
        self.length = length

    def read(self) -> bytes:
        """The bytes, for callers that cannot send a file; may block if they are not cached."""
        return os.pread(self.file.fd, self.length, self.position)


class FileSystem:
    """The operating system's calls. Stateless, so any thread may use it; errors are `OSError`."""

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

    def load_into_cache(self, file: OpenFile, position: int, length: int) -> None:
        """Load a range of the file into the page cache without copying it, at a tenth of the cost of a read.

        Pages that are cached already are not read.
        """
        for start in range(position, position + length, LOAD_PIECE_BYTES):
            end = min(start + LOAD_PIECE_BYTES, position + length)
            if not is_cached(file.fd, start, end - start):
                while start < end and (sent := os.sendfile(_nowhere(), file.fd, start, end - start)):
                    start += sent

    def is_cached(self, file: OpenFile, position: int, length: int) -> bool:
        """Whether a range of the file is known to be in the page cache."""
        return is_cached(file.fd, position, length)

    def write_at(self, file: OpenFile, payload: Buffer, position: int, zeroes: int = 0) -> None:
        """Write all of it, or raise with the file in an unknown state after `position`.

        Followed by `zeroes` zeroes, at most MAX_ZEROES, if the disk takes them.
        """
        view = payload if isinstance(payload, memoryview) else memoryview(payload)
        written = write_run(file.fd, view, position, zeroes)
        while written < len(view):
            written += os.pwrite(file.fd, view[written:], position + written)

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
        """Allocate disk space for a range that is still to be written; the file size does not change."""
        take_room(file.fd, position, length)

    def sync(self, file: OpenFile) -> None:
        """Return when the bytes are on disk."""
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
        """The free space of the disk at that path."""
        statistics = os.statvfs(path)
        return statistics.f_frsize * statistics.f_bavail

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
        """Remove a file; no error if it does not exist."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)

    def copy_modification_time(self, source: str, target: str) -> None:
        """Copy the modification time of another file."""
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
        """Replace a small file so that after a crash either the old or the new one is there, complete."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        self.truncate(file, 0)
        self.write_at(file, content, 0)
        self.sync(file)
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))


@functools.cache
def _nowhere() -> int:
    """A descriptor of /dev/null, open for as long as the process runs."""
    return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
