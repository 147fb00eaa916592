"""While a broker starts it serves only the controller's requests: clients wait until it knows the cluster."""

from __future__ import annotations

from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.requests.served_apis import CONTROL
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange

_CONTROL_KEYS = frozenset(api_key.to_bytes(2, "big") for api_key in CONTROL)


class StartupRequestBlocker:
    """Keeps clients' requests from the dispatcher of one listener until `open`. Lives on the loop.

    The first request of a client is kept and its connection is not read any further, so that a client which
    connects during the start gets its response after it.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._waiting: list[tuple[Connection, memoryview, Exchange]] = []
        self._is_open = False

    def handle(self, connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        """Dispatch a request of the controller, or any request after `open`; keep any other."""
        if self._is_open or bytes(frame[:2]) in _CONTROL_KEYS:
            self._dispatcher.handle(connection, frame, exchange)
            return
        # The frame is a view of a buffer that is used again.
        self._waiting.append((connection, memoryview(bytearray(frame)), exchange))
        connection.pause()

    def open(self) -> None:
        """Serve all clients; the requests that were kept come first."""
        self._is_open = True
        waiting, self._waiting = self._waiting, []
        for connection, frame, exchange in waiting:
            if not connection.is_closed:
                self._dispatcher.handle(connection, frame, exchange)
                connection.resume()
