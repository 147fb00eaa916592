# cython: annotation_typing=False
"""The order of answers on one connection: as asked, whatever order they become ready in.

Compiled by Cython (exchange.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

Parts = Sequence[Any]
"""What goes out for one request: bytes-like objects and file ranges; empty if the request wants no answer."""


class Exchange:
    """One request that waits for its answer. Whoever handles the request calls `answer` exactly once."""

    __slots__ = ("_parts", "_queue")

    def __init__(self, queue: ExchangeQueue) -> None:
        self._queue = queue
        self._parts: Parts | None = None

    def answer(self, parts: Parts) -> None:
        """Send these parts when all earlier requests of the connection have been answered."""
        assert self._parts is None, "a request is answered once"
        self._parts = parts
        self._queue.advance()


class ExchangeQueue:
    """The open exchanges of one connection, oldest first.

    `send` gets the parts of each answer in order, none for a request that wants no answer. Owned by the
    connection.
    """

    __slots__ = ("_open", "_send")

    def __init__(self, send: Callable[[Parts], None]) -> None:
        self._open: deque[Exchange] = deque()
        self._send = send

    def __len__(self) -> int:
        return len(self._open)

    def begin(self) -> Exchange:
        """A new exchange behind all others."""
        exchange = Exchange(self)
        self._open.append(exchange)
        return exchange

    def advance(self) -> None:
        """Send what is ready at the front."""
        waiting = self._open
        while waiting:
            first = waiting[0]
            parts = first._parts
            if parts is None:
                return
            waiting.popleft()
            self._send(parts)
