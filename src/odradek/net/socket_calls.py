"""Receive and send as compiled code calls them: by descriptor, on a socket that does not block.

If nothing can be received or sent now, that is not an error. socket_calls.pxd has the C side;
both are used alike.
"""

from __future__ import annotations

import os

NOTHING_YET = -1


def receive(fd: int, buffer: memoryview) -> int:
    """Receive into the buffer; returns the number of bytes, 0 at the end, or `NOTHING_YET`."""
    try:
        return os.readv(fd, (buffer,))
    except (BlockingIOError, InterruptedError):
        return NOTHING_YET


def send(fd: int, answer: bytes | bytearray) -> int:
    """Send what the socket accepts; returns the number of bytes, perhaps 0. OSError if it is broken."""
    try:
        return os.write(fd, answer)
    except (BlockingIOError, InterruptedError):
        return 0


def send_file(fd: int, file_fd: int, position: int, size: int) -> int:
    """Send a range of a file; returns the number of bytes, 0 at its end, or `NOTHING_YET`."""
    try:
        return os.sendfile(fd, file_fd, position, size)
    except (BlockingIOError, InterruptedError):
        return NOTHING_YET
