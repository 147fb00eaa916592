"""Receive and send as compiled code calls them: by descriptor, on a socket that does not block.

That nothing can be had or taken now is no error: it happens all the time. socket_calls.pxd has the C side;
both are used alike.
"""

from __future__ import annotations

import os

NOTHING_YET = -1


def receive(fd: int, buffer: memoryview) -> int:
    """Fill the buffer with what is there: how many bytes; 0 at the end; `NOTHING_YET`. OSError if broken."""
    try:
        return os.readv(fd, (buffer,))
    except (BlockingIOError, InterruptedError):
        return NOTHING_YET


def send(fd: int, answer: bytes | bytearray) -> int:
    """Send what the socket takes: how many bytes, maybe none. OSError if it is broken."""
    try:
        return os.write(fd, answer)
    except (BlockingIOError, InterruptedError):
        return 0


def send_file(fd: int, file_fd: int, position: int, size: int) -> int:
    """Send a run of a file: how many bytes; 0 at its end; `NOTHING_YET`. OSError if it is broken."""
    try:
        return os.sendfile(fd, file_fd, position, size)
    except (BlockingIOError, InterruptedError):
        return NOTHING_YET
