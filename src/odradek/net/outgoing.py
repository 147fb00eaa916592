# cython: annotation_typing=False
"""What a connection has still to send: bytes and file ranges, in order, as fast as the socket takes them.

Compiled by Cython (outgoing.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any, Protocol, runtime_checkable

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.net.socket_calls import send
else:
    from odradek.net.socket_calls import send

MAX_BUFFERS_PER_CALL = 64
SMALL_FILE_BYTES = 16 * 1024
MORE = getattr(socket, "MSG_MORE", 0)


@runtime_checkable
class FilePart(Protocol):
    """A run of bytes in a file that goes from the page cache to the socket without passing through us."""

    def __len__(self) -> int: ...

    def send_to(self, socket_fd: int, start: int) -> int:
        """Send from byte `start` of the run on; how many bytes went, BlockingIOError if none could."""
        ...

    def read(self) -> bytes:
        """The bytes themselves. OSError if they are not all there any more."""
        ...


class Outgoing:
    """The unsent parts of one connection. Owned by it."""

    __slots__ = ("_fd", "_parts", "_socket", "_started", "unsent_bytes")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._fd = sock.fileno()
        self._parts: deque[Any] = deque()
        self._started = 0  # bytes of the first part that have gone
        self.unsent_bytes = 0

    def add(self, parts: Any) -> None:
        """Put the parts of an answer behind all others."""
        for part in parts:
            size = len(part)
            if size:
                if size <= SMALL_FILE_BYTES and not isinstance(part, bytes | bytearray | memoryview):
                    # A copy and one call are cheaper than three calls and three packets.
                    part = part.read()
                self._parts.append(part)
                self.unsent_bytes += size

    def send(self, parts: Any) -> bool:
        """Put the parts of an answer behind all others and send what the socket takes; like `flush`."""
        if self.unsent_bytes == 0 and len(parts) == 1 and isinstance(parts[0], bytes | bytearray):
            # Most answers are a few bytes, and go at once.
            answer = parts[0]
            sent = send(self._fd, answer)
            if sent == len(answer):
                return True
            parts = (memoryview(answer)[sent:],)
        self.add(parts)
        return self.flush()

    def flush(self) -> bool:
        """Send what the socket takes now; True if nothing is left. OSError if the connection is gone."""
        try:
            while self._parts:
                sent = self._send_some()
                self.unsent_bytes -= sent
                self._drop(sent)
        except (BlockingIOError, InterruptedError):
            return False
        return True

    def _send_some(self) -> int:
        first = self._parts[0]
        if isinstance(first, bytes | bytearray | memoryview):
            return self._send_buffers()
        return int(first.send_to(self._fd, self._started))

    def _send_buffers(self) -> int:
        """As many buffers as stand at the front, in one call."""
        buffers: list[Any] = []
        for part in self._parts:
            if not isinstance(part, bytes | bytearray | memoryview) or len(buffers) == MAX_BUFFERS_PER_CALL:
                break
            buffers.append(part)
        if self._started:
            buffers[0] = memoryview(buffers[0])[self._started :]
        # What goes before a file waits in the kernel for it: a packet, and a waking of the client, less.
        flags = MORE if len(buffers) < len(self._parts) else 0
        if len(buffers) == 1:
            return self._socket.send(buffers[0], flags)
        return self._socket.sendmsg(buffers, (), flags)

    def _drop(self, sent: int) -> None:
        self._started += sent
        while self._parts and self._started >= len(self._parts[0]):
            self._started -= len(self._parts.popleft())
