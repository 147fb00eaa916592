"""A FIFO that wakes the store's thread: for a job of its own process, or after a commit of another one.

    DATABASE-sessions/<session id, 16 hex digits>.wake

Each byte is one of `JOB` and `COMMIT`. A FIFO that is full needs no more: its reader has not run yet.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

JOB = b"j"
COMMIT = b"c"
_READ_AT_ONCE = 65_536


class Wakeups:
    """The reading end. Made, read and closed by the store's thread; `wake` may be called by any thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        # Also open for writing: the FIFO never comes to its end, and wakes its own process.
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._closing = threading.Lock()

    def wake(self) -> None:
        """Let the thread see that it has a job."""
        with self._closing:
            if self.fd >= 0:
                write_wakeup(self.fd, JOB)

    def read(self) -> bytes:
        """The bytes written since the last call."""
        try:
            return os.read(self.fd, _READ_AT_ONCE)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        """Close the FIFO; `wake` does nothing from here on."""
        with self._closing:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1


def open_for_wakeups(path: Path) -> int | None:
    """A descriptor to wake another process by; None if it does not read its FIFO any more."""
    try:
        return os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


def write_wakeup(fd: int, kind: bytes) -> None:
    """Write one byte, unless the FIFO is full or has no reader any more."""
    with contextlib.suppress(BlockingIOError, BrokenPipeError):
        os.write(fd, kind)
