# cython: annotation_typing=False
"""The order of responses on one connection: that of the requests.

Compiled by Cython (exchange.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Parts = Sequence[Any]
"""The response to one request: bytes-like objects and file ranges; empty if the request has no response."""


class Exchange:
    """One request that waits for its response. Its handler calls `answer` exactly once."""

    __slots__ = ("_next", "_parts", "_queue")

    def __init__(self, queue: ExchangeQueue) -> None:
        self._queue = queue
        self._parts: Parts | None = None
        self._next: Exchange | None = None

    def answer(self, parts: Parts) -> None:
        """Send these parts when all earlier requests of the connection have been answered."""
        assert self._parts is None, "a request is answered once"
        self._parts = parts
        self._queue.advance()


class ExchangeQueue:
    """The open exchanges of one connection, a linked list, oldest first.

    `send` gets the parts of each response in order, none for a request without a response. Owned by the
    connection.
    """

    __slots__ = ("_first", "_last", "_send", "count")

    def __init__(self, send: Callable[[Parts], None]) -> None:
        self._first: Exchange | None = None
        self._last: Exchange | None = None
        self._send = send
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def begin(self) -> Exchange:
        """Append a new exchange."""
        exchange = Exchange(self)
        last = self._last
        if last is None:
            self._first = exchange
        else:
            last._next = exchange
        self._last = exchange
        self.count += 1
        return exchange

    def advance(self) -> None:
        """Send the responses that are next and ready."""
        while True:
            first = self._first
            if first is None or first._parts is None:
                return
            self._first = first._next
            if self._first is None:
                self._last = None
            first._next = None
            self.count -= 1
            self._send(first._parts)
