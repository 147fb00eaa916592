# cython: annotation_typing=False
"""The answer of a short way that has to wait, and is then given by that way too.

Compiled by Cython (late_answers.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from odradek.broker.requests.purgatory import Waiter
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange

log = logging.getLogger(__name__)


class LateAnswer(Waiter):
    """A request that waits. Its short way makes it and knows what for; `ShortWays` says who asked."""

    __slots__ = ("counters", "exchange", "started")

    exchange: Exchange
    counters: RequestCounters
    started: float

    def wait_for(
        self, connection: Connection, exchange: Exchange, counters: RequestCounters, started: float
    ) -> None:
        """Begin to wait with the answer to this client."""
        self.connection = connection
        self.exchange = exchange
        self.counters = counters
        self.started = started
        self.park()

    def park(self) -> None:
        """Enter the purgatory; the heir knows which, for what and how long."""
        raise NotImplementedError

    def complete(self, is_over: bool) -> bool:
        """Answer if there is enough for it, or if the time is over; False if it goes on waiting."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        """There was progress."""
        return self._complete_safely(is_over=False)

    def on_timeout(self) -> None:
        """The client has waited long enough."""
        self._complete_safely(is_over=True)

    def _complete_safely(self, is_over: bool) -> bool:
        connection = self.connection
        assert connection is not None
        if connection.is_closed:
            return True
        try:
            return self.complete(is_over)
        except Exception:
            log.exception("a bug in a late answer, asked by %s", connection.peer)
            connection.close("a fault of the broker")
            return True

    def answer(self, parts: Sequence[Any]) -> None:
        """Send these parts; once."""
        counters = self.counters
        for part in parts:
            counters.response_bytes += len(part)
        counters.seconds += perf_counter() - self.started
        self.exchange.answer(parts)
