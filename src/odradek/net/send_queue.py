# cython: annotation_typing=False
"""The unsent data of a connection: bytes and file ranges, in order.

Compiled by Cython (send_queue.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any, Protocol, runtime_checkable

import cython

if cython.compiled:
    from cython.cimports.odradek.net.socket_calls import send
else:
    from odradek.net.socket_calls import send

MAX_BUFFERS_PER_CALL = 64
SMALL_FILE_BYTES = 16 * 1024
CORK: int = getattr(socket, "TCP_CORK", 0)  # Linux


@runtime_checkable
class FilePart(Protocol):
    """A range of a file, sent from the page cache to the socket (sendfile)."""

    def __len__(self) -> int: ...

    def send_to(self, socket_fd: int, start: int) -> int:
        """Send from byte `start` of the range; returns the bytes sent, 0 if the socket is full."""
        ...

    def read(self) -> bytes:
        """The bytes. OSError if the file has become shorter."""
        ...


class SendQueue:
    """The unsent parts of one connection. Owned by it."""

    __slots__ = ("_can_cork", "_fd", "_is_corked", "_parts", "_socket", "_started", "unsent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._fd = sock.fileno()
        self._can_cork = CORK != 0 and sock.family in (socket.AF_INET, socket.AF_INET6)
        self._is_corked = False
        self._parts: deque[Any] = deque()
        self._started = 0  # bytes of the first part that were sent
        self.unsent_bytes = 0

    def add(self, parts: Any) -> None:
        """Append the parts of a response."""
        for part in parts:
            size = len(part)
            if size:
                if not isinstance(part, bytes | bytearray | memoryview):
                    if size <= SMALL_FILE_BYTES:
                        # A copy and one call are cheaper than three calls.
                        part = part.read()
                    else:
                        self._cork(True)
                self._parts.append(part)
                self.unsent_bytes += size

    def send(self, parts: Any) -> bool:
        """Append the parts of a response and send what the socket accepts; like `flush`."""
        if self.unsent_bytes == 0 and len(parts) == 1 and isinstance(parts[0], bytes | bytearray):
            # Most responses are a few bytes and are sent at once.
            answer = parts[0]
            sent = send(self._fd, answer)
            if sent == len(answer):
                return True
            parts = (memoryview(answer)[sent:],)
        self.add(parts)
        return self.flush()

    def flush(self) -> bool:
        """Send what the socket accepts; True if nothing is left. OSError if the connection is closed."""
        try:
            while self._parts:
                sent = self._send_some()
                if sent == 0:
                    return False
                self.unsent_bytes -= sent
                self._drop(sent)
        except (BlockingIOError, InterruptedError):
            return False
        self._cork(False)
        return True

    def _cork(self, wanted: bool) -> None:
        """Have the kernel hold back a packet that is not full, so that files and the bytes between them are
        sent in full packets.
        """
        if wanted != self._is_corked and self._can_cork:
            self._is_corked = wanted
            self._socket.setsockopt(socket.IPPROTO_TCP, CORK, wanted)

    def _send_some(self) -> int:
        first = self._parts[0]
        if isinstance(first, bytes | bytearray | memoryview):
            return self._send_buffers()
        return int(first.send_to(self._fd, self._started))

    def _send_buffers(self) -> int:
        """Send the leading buffers in one call; returns the bytes sent, 0 if the socket is full."""
        buffers: list[Any] = []
        for part in self._parts:
            if not isinstance(part, bytes | bytearray | memoryview) or len(buffers) == MAX_BUFFERS_PER_CALL:
                break
            buffers.append(part)
        if self._started:
            buffers[0] = memoryview(buffers[0])[self._started :]
        if len(buffers) == 1 and isinstance(buffers[0], bytes | bytearray):
            sent: int = send(self._fd, buffers[0])
            return sent
        return self._socket.sendmsg(buffers)

    def _drop(self, sent: int) -> None:
        self._started += sent
        while self._parts and self._started >= len(self._parts[0]):
            self._started -= len(self._parts.popleft())
