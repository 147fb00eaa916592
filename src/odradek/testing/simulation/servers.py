"""Listeners and server connections of a simulated broker: its own dispatcher over the simulated network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from odradek.net.exchange import ExchangeQueue
from odradek.testing.simulation.frames import FrameReader
from odradek.testing.simulation.network import ConnectionEnd, SimulatedNetwork
from odradek.testing.simulation.virtual_time import SimulatedProcess, current_process

_BYTES = (bytes, bytearray, memoryview)  # other parts of a response are read from a file

Handle = Callable[[Any, memoryview, Any], None]


class SimulatedServerConnection:
    """Stands for `net.connection.Connection` towards dispatcher and handlers."""

    def __init__(self, end: ConnectionEnd, handle: Handle, on_close: Callable[[Any], None]) -> None:
        self._end = end
        self._handle = handle
        self._on_close = on_close
        self._frames = FrameReader(self._on_frame)
        self._exchanges = ExchangeQueue(self._respond)
        self._waiting: list[bytes] = []
        self._pauses = 0
        self.peer = end.peer.host
        self.host = "127.0.0.1"
        self.state: Any = None
        self.is_exempt = False
        self.is_closed = False
        self.at_close: dict[object, Callable[[], None]] = {}
        end.on_bytes = self._frames.feed
        end.on_close = self._closed

    @property
    def open_requests(self) -> int:
        """Requests without a response."""
        return len(self._exchanges)

    def pause(self) -> None:
        """Handle no further request until `resume`."""
        self._pauses += 1

    def resume(self) -> None:
        """Handle what has arrived meanwhile."""
        self._pauses -= 1
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            self._on_frame(frame)

    def handle_with(self, handle: Handle) -> None:
        """Pass later frames to another handler."""
        self._handle = handle

    def mute(self, seconds: float) -> None:
        """Throttled clients do not occur."""

    def close(self, reason: str = "") -> None:
        """Hang up."""
        if not self.is_closed:
            self._end.close()
            self._closed()

    def _on_frame(self, frame: bytes) -> None:
        if self._pauses:
            self._waiting.append(frame)
        elif not self.is_closed:
            self._handle(self, memoryview(bytearray(frame)), self._exchanges.begin())

    def _respond(self, parts: Sequence[Any]) -> None:
        if parts and not self.is_closed:
            # A response already begins with its size.
            self._end.send(b"".join(part if isinstance(part, _BYTES) else part.read() for part in parts))

    def _closed(self) -> None:
        self.is_closed = True
        self._on_close(self)
        at_close, self.at_close = self.at_close, {}
        for call in at_close.values():
            call()


class SimulatedListener:
    """Stands for `net.server.Listener`. Owned by its broker."""

    def __init__(self, network: SimulatedNetwork, handle: Handle, **limits: Any) -> None:
        self._network = network
        self._handle = handle
        self._connections: dict[SimulatedServerConnection, None] = {}
        self._address: tuple[str, int] | None = None
        self.limits = limits.get("limits")
        self.accepted = self.refused = 0

    @property
    def connection_count(self) -> int:
        """Connections open now."""
        return len(self._connections)

    @property
    def port(self) -> int:
        """The port it listens on."""
        assert self._address is not None
        return self._address[1]

    def listen(self, host: str, port: int) -> None:
        """Bind the address."""
        self._address = (host, port)

    def start_accepting(self) -> None:
        """Accept connections."""
        assert self._address is not None
        self._network.listen(*self._address, process_of_this_code(), self._accept)

    def handle_with(self, handle: Handle) -> None:
        """Pass later frames of every connection to another handler."""
        self._handle = handle
        for connection in self._connections:
            connection.handle_with(handle)

    def stop_accepting(self) -> None:
        """Refuse new connections."""
        if self._address is not None:
            self._network.stop_listening(*self._address)

    def close(self) -> None:
        """Close every connection."""
        self.stop_accepting()
        for connection in list(self._connections):
            connection.close()

    def _accept(self, end: ConnectionEnd) -> None:
        self.accepted += 1
        connection = SimulatedServerConnection(
            end, self._handle, lambda one: self._connections.pop(one, None)
        )
        self._connections[connection] = None


def process_of_this_code() -> SimulatedProcess:
    """The simulated process that runs now."""
    process = current_process()
    assert process is not None, "this code must run inside of a simulated process"
    return process
