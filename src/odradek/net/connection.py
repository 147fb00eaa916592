# cython: annotation_typing=False
"""The server's side of one connection: frames in, responses out in order, both bounded.

Compiled by Cython (connection.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import cython

from odradek.net.exchange import Exchange, ExchangeQueue
from odradek.net.frames import BufferPool, FrameAssembler, FrameTooLarge
from odradek.net.request_limit import RequestLimit
from odradek.net.send_queue import SendQueue

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
    from cython.cimports.odradek.net.socket_calls import NOTHING_YET, receive
else:
    from odradek.common.c_clocks import monotonic_seconds
    from odradek.net.socket_calls import NOTHING_YET, receive

log = logging.getLogger(__name__)

SIZE_BYTES = 4
API_KEY_END = 6
NO_API_KEYS: frozenset[int] = frozenset()
FIRST_PIECE_BYTES = 4096
"""Read first of a frame that is expected to be large, so that the rest needs no copy."""


class ConnectionLimits(NamedTuple):
    """Bounds for one connection.

    max_open_requests: requests that may wait for their response before we stop reading (pipelining).
    max_unsent_bytes: responses that the client has not received before we stop reading.
    """

    max_frame_bytes: int = 100 * 1024 * 1024
    max_open_requests: int = 64
    max_unsent_bytes: int = 8 * 1024 * 1024


Handler = Callable[["Connection", memoryview, Exchange], None]
"""Handles one frame: responds at once, or copies the frame before it returns and responds later."""


class Connection:
    """One client's connection. Lives on the loop; its listener creates it and is notified when it closes."""

    __slots__ = (
        "_assembler",
        "_closed",
        "_exchanges",
        "_exempt_api_keys",
        "_fd",
        "_handle",
        "_held",
        "_is_muted",
        "_is_reading",
        "_is_serving",
        "_is_writing",
        "_loop",
        "_max_open_requests",
        "_max_unsent_bytes",
        "_on_close",
        "_outgoing",
        "_receive_buffer",
        "_request_limit",
        "_socket",
        "at_close",
        "host",
        "is_exempt",
        "last_active",
        "peer",
        "state",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        *,
        handle: Handler,
        on_close: Callable[[Connection], None],
        receive_buffer: memoryview,
        frame_buffers: BufferPool,
        limits: ConnectionLimits,
        request_limit: RequestLimit,
        exempt_api_keys: frozenset[int] = NO_API_KEYS,
    ) -> None:
        self._loop = loop
        self._socket = sock
        self._fd = sock.fileno()
        self._handle = handle
        self._on_close = on_close
        self._receive_buffer = receive_buffer
        self._max_open_requests = limits.max_open_requests
        self._max_unsent_bytes = limits.max_unsent_bytes
        self._request_limit = request_limit
        self._assembler = FrameAssembler(limits.max_frame_bytes, frame_buffers)
        self._exchanges = ExchangeQueue(self._send)
        self._outgoing = SendQueue(sock)
        # Frames that were received with others and wait until the connection is below its limits.
        self._held: deque[memoryview] = deque()
        self._is_muted = False
        self._is_reading = False
        self._is_serving = False  # several frames at once: their responses are sent together
        self._is_writing = False
        self._closed = False
        # Read even if the request limit is reached: requests of the controller must not wait behind those of
        # clients. The handler sets it with each request; a new connection shows it by its first bytes.
        self.is_exempt = False
        self._exempt_api_keys = exempt_api_keys
        self.last_active = monotonic_seconds()  # the loop's clock
        self.host: str = _peer_host(sock)  # the client's address, as ACLs name it
        self.peer: str = _peer_name(sock)
        self.state: Any = None  # whatever the handler keeps per connection
        # Callbacks for the close of the connection, by their owner.
        self.at_close: dict[Any, Callable[[], None]] = {}
        self._read(True)

    @property
    def is_closed(self) -> bool:
        """Whether either side has closed it."""
        return self._closed

    @property
    def open_requests(self) -> int:
        """Requests without a response yet."""
        return self._exchanges.count

    def close(self, reason: str = "") -> None:
        """Close the connection; unsent responses are lost."""
        if self._closed:
            return
        self._closed = True
        if reason:
            log.info("closing the connection of %s: %s", self.peer, reason)
        # Before close: the loop must not watch a file descriptor that the system may use again.
        self._read(False)
        self._write(False)
        self._socket.close()
        self._fd = -1
        self._held.clear()
        callbacks, self.at_close = self.at_close, {}
        for callback in callbacks.values():
            callback()
        self._request_limit.remove(self)
        self._on_close(self)

    def _read(self, wanted: bool) -> None:
        if wanted != self._is_reading:
            self._is_reading = wanted
            if wanted:
                self._loop.add_reader(self._fd, self._readable)
            else:
                self._loop.remove_reader(self._fd)

    def _write(self, wanted: bool) -> None:
        if wanted != self._is_writing:
            self._is_writing = wanted
            if wanted:
                self._loop.add_writer(self._fd, self._writable)
            else:
                self._loop.remove_writer(self._fd)

    def _readable(self) -> None:
        if self._closed:
            return
        if self._request_limit.is_full and not self.is_exempt and not self._is_exempt_next():
            self._stall()
            return
        free_space = self._assembler.free_space()
        is_first_piece = free_space is None and self._assembler.is_large_expected
        shared = self._receive_buffer[:FIRST_PIECE_BYTES] if is_first_piece else self._receive_buffer
        try:
            count = receive(self._fd, shared if free_space is None else free_space)
        except OSError as error:
            self.close(str(error))
            return
        if count == NOTHING_YET:
            return
        if count == 0:
            self.close("it ended in the middle of a frame" if self._assembler.is_mid_frame else "")
            return
        self.last_active = monotonic_seconds()
        if free_space is None:
            self._received(count)
            if is_first_piece and self._assembler.is_mid_frame and self._is_reading:
                self._readable()  # the rest is read into its own buffer
            return
        free_space.release()
        frame = self._assembler.filled(count)
        if frame is not None:
            self._serve_one(frame)
            self._assembler.done()

    def _is_exempt_next(self) -> bool:
        """Whether the next request is one that the limit is not for; nothing is taken from the socket."""
        if not self._exempt_api_keys or self._held or self._assembler.is_mid_frame:
            return False
        try:
            start = self._socket.recv(API_KEY_END, socket.MSG_PEEK)
        except OSError:
            return False
        api_key = int.from_bytes(start[SIZE_BYTES:], "big", signed=True)
        self.is_exempt = len(start) == API_KEY_END and api_key in self._exempt_api_keys
        return self.is_exempt

    def _received(self, count: int) -> None:
        """Handle the first `count` bytes of the shared buffer."""
        frame = self._assembler.only_frame(self._receive_buffer, count)
        if frame is not None:
            self._serve_one(frame)
            return
        try:
            frames = self._assembler.feed(self._receive_buffer[:count])
        except FrameTooLarge as error:
            log.warning("%s sent an invalid frame: %s", self.peer, error)
            self.close()
            return
        self._serve(frames)
        self._assembler.done()

    def _serve_one(self, frame: memoryview) -> None:
        """Like `_serve`, for a single frame."""
        if self._is_full():
            self._held.append(memoryview(bytearray(frame)))
            self._stall()
        else:
            self._handle(self, frame, self._exchanges.begin())

    def _serve(self, frames: list[memoryview]) -> None:
        """Handle frames until the connection is full; the rest is copied from the shared buffer and kept."""
        self._is_serving = len(frames) > 1
        for index, frame in enumerate(frames):
            if self._is_full():
                self._held.extend(memoryview(bytearray(late)) for late in frames[index:])
                self._stall()
                break
            self._handle(self, frame, self._exchanges.begin())
            if self._closed:
                return
        if self._is_serving:
            self._is_serving = False
            if not self._is_writing:
                self._flush(())
            if not self._is_reading and not self._closed:
                self._loop.call_soon(self._resume_reading)

    def _is_full(self) -> bool:
        return (
            self._exchanges.count >= self._max_open_requests
            or (self._request_limit.is_full and not self.is_exempt)
            or self._is_muted
            or self._outgoing.unsent_bytes > self._max_unsent_bytes
        )

    def handle_with(self, handle: Handler) -> None:
        """Pass later frames to another handler."""
        self._handle = handle

    def mute(self, seconds: float) -> None:
        """`pause` for that time; for clients beyond their quota."""
        if not self._closed and not self._is_muted:
            self.pause()
            self._loop.call_later(seconds, self.resume)

    def pause(self) -> None:
        """Read no more requests until `resume`; responses are still sent."""
        self._is_muted = True
        self._read(False)

    def resume(self) -> None:
        """Read requests again, after those that are held."""
        self._is_muted = False
        if not self._closed:
            self._resume_reading()

    def _stall(self) -> None:
        """Stop reading until a response is sent or the request limit of the broker allows more."""
        self._read(False)
        if self._request_limit.is_full and not self.is_exempt:
            self._request_limit.stall(self, self._resume_reading)

    def _send(self, parts: Any) -> None:
        if self._closed:
            return
        if self._is_writing or self._is_serving:
            try:
                self._outgoing.add(parts)
            except OSError as error:
                self.close(str(error))
                return
        else:
            self._flush(parts)
        if not self._is_reading and not self._closed:
            # Not from here: a response sent by a handler must not start the next request inside that handler.
            self._loop.call_soon(self._resume_reading)

    def _writable(self) -> None:
        self._flush(())
        if not self._is_reading:
            self._resume_reading()

    def _flush(self, parts: Any) -> None:
        if self._closed:
            return
        try:
            done = self._outgoing.send(parts)
        except OSError as error:
            self.close(str(error))
            return
        self._write(not done)

    def _resume_reading(self) -> None:
        """Handle held frames, then read again, within the limits."""
        while self._held and not self._closed and not self._is_full():
            self._handle(self, self._held.popleft(), self._exchanges.begin())
        if self._closed:
            return
        if self._request_limit.is_full and not self.is_exempt:
            self._stall()
        elif not self._held and not self._is_full():
            self._read(True)


def _peer_name(sock: socket.socket) -> str:
    try:
        name = sock.getpeername()
    except OSError:
        return "a peer that is already gone"
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name)


def _peer_host(sock: socket.socket) -> str:
    try:
        name = sock.getpeername()
    except OSError:
        return ""
    # An IPv4 client of an IPv6 socket keeps its IPv4 address.
    return str(name[0]).removeprefix("::ffff:") if isinstance(name, tuple) else ""
