"""A listener: accepts connections within its limits, and closes those that have been idle for too long."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from operator import attrgetter
from typing import NamedTuple

from odradek.net.admission import UNLIMITED, Admission, CreationRate
from odradek.net.connection import NO_API_KEYS, Connection, ConnectionLimits, Handler
from odradek.net.frames import BufferPool
from odradek.net.listening import SocketOptions, listen, make_ready
from odradek.net.request_limit import RequestLimit

log = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES = 256 * 1024
IDLE_CHECKS_PER_LIMIT = 10
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
ACCEPT_PAUSE_SECONDS = 0.1


class ListenerLimits(NamedTuple):
    """Bounds for the connections of one listener; those of the whole broker are in `Admission`."""

    max_connections: int = UNLIMITED
    max_per_second: int = UNLIMITED
    max_idle_seconds: float = 600.0


class Listener:
    """One address. Lives on the loop; every connection shares its receive buffer.

    The shared buffer is safe because a handler is done with a frame, or has copied it, before it returns.
    """

    def __init__(
        self,
        handle: Handler,
        *,
        connection_limits: ConnectionLimits | None = None,
        limits: ListenerLimits | None = None,
        admission: Admission | None = None,
        request_limit: RequestLimit | None = None,
        socket_options: SocketOptions | None = None,
        exempt_api_keys: frozenset[int] = NO_API_KEYS,
        is_privileged: bool = False,
    ) -> None:
        """`exempt_api_keys`: a connection that begins with one of these is read beyond the request limit.

        `is_privileged`: its connections are accepted beyond the limit of the broker, in place of others.
        """
        self._exempt_api_keys = exempt_api_keys
        self._is_privileged = is_privileged
        self._handle = handle
        self._connection_limits = connection_limits or ConnectionLimits()
        self.limits = limits or ListenerLimits()
        self._admission = admission or Admission()
        self._request_limit = request_limit or RequestLimit()
        self._socket_options = socket_options or SocketOptions()
        self._rate = CreationRate()
        self._receive_buffer = memoryview(bytearray(RECEIVE_BUFFER_BYTES))
        self._frame_buffers = BufferPool()
        self._connections: set[Connection] = set()
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self.accepted = 0
        self.refused = 0

    @property
    def connection_count(self) -> int:
        """Connections open now."""
        return len(self._connections)

    @property
    def port(self) -> int:
        """The port it listens on; picked by the system if 0 was asked for."""
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    def listen(self, host: str, port: int) -> None:
        """Bind the address; call it on the running loop. Clients that connect wait for `start_accepting`."""
        self._loop = asyncio.get_running_loop()
        self._socket = listen(host, port, self._socket_options)
        self._schedule_idle_check()

    def start_accepting(self) -> None:
        """Accept the waiting connections and new ones."""
        if self._socket is not None and self._loop is not None:
            self._loop.add_reader(self._socket.fileno(), self._acceptable)

    def handle_with(self, handle: Handler) -> None:
        """Pass later frames of every connection to another handler."""
        self._handle = handle
        for connection in self._connections:
            connection.handle_with(handle)

    def stop_accepting(self) -> None:
        """Accept no more connections; open ones stay open."""
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        """Stop, and close every connection."""
        self.stop_accepting()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for connection in list(self._connections):
            connection.close()

    def close_least_active(self) -> None:
        """Close the connection that was silent for longest, if there is one."""
        least_active = min(self._connections, key=attrgetter("last_active"), default=None)
        if least_active is not None:
            least_active.close("another broker needs its place")

    def _acceptable(self) -> None:
        assert self._socket is not None
        assert self._loop is not None
        while True:
            wait_seconds = self._rate.wait_seconds(self._loop.time(), self.limits.max_per_second)
            if wait_seconds:
                self._pause_accepting(wait_seconds)
                return
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_FILES:
                    raise
                # Pause: a busy loop would starve the open connections.
                log.warning("cannot accept connections for now: %s", error)
                self._pause_accepting(ACCEPT_PAUSE_SECONDS)
                return
            self._rate.accepted()
            self._admit(accepted, address[0])

    def _pause_accepting(self, seconds: float) -> None:
        assert self._socket is not None
        assert self._loop is not None
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(seconds, self.start_accepting)

    def _admit(self, accepted: socket.socket, ip: str) -> None:
        assert self._loop is not None
        refusal = self._admission.refusal(ip, is_privileged=self._is_privileged)
        if refusal is None and len(self._connections) >= self.limits.max_connections:
            refusal = f"this listener has {len(self._connections)} connections, its limit"
        if refusal is not None:
            self.refused += 1
            log.info("refusing a connection from %s: %s", ip, refusal)
            accepted.close()
            return
        if self._admission.is_full:
            self._admission.close_least_active()
        make_ready(accepted, ip)
        self._admission.opened(ip)
        self.accepted += 1

        def on_close(connection: Connection) -> None:
            self._connections.discard(connection)
            self._admission.closed(ip)

        connection = Connection(
            self._loop,
            accepted,
            handle=self._handle,
            on_close=on_close,
            receive_buffer=self._receive_buffer,
            frame_buffers=self._frame_buffers,
            limits=self._connection_limits,
            request_limit=self._request_limit,
            exempt_api_keys=self._exempt_api_keys,
        )
        self._connections.add(connection)

    def _schedule_idle_check(self) -> None:
        assert self._loop is not None
        delay = self.limits.max_idle_seconds / IDLE_CHECKS_PER_LIMIT
        self._idle_check = self._loop.call_later(delay, self._close_idle)

    def _close_idle(self) -> None:
        """One sweep over all connections costs less than a timer for each."""
        assert self._loop is not None
        oldest = self._loop.time() - self.limits.max_idle_seconds
        for connection in [one for one in self._connections if one.last_active < oldest]:
            # A client that waits for a response is not idle.
            if not connection.open_requests:
                connection.close("it was idle for too long")
        self._schedule_idle_check()
