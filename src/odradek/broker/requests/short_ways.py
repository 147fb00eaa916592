# cython: annotation_typing=False
"""Ordinary requests that are answered from their bytes, before anything is decoded.

Compiled by Cython (short_ways.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odradek.broker.requests.late_answers import LateAnswer
from odradek.broker.requests.services import Services
from odradek.metrics.counters import RequestCounters
from odradek.net.connection import Connection, Handler
from odradek.net.exchange import Exchange
from odradek.protocol.api_key import ApiKey

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int16_at, octets_of
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.byte_access import int16_at, octets_of
    from odradek.common.c_clocks import monotonic_seconds

log = logging.getLogger(__name__)

ShortWay = Callable[[Services, memoryview], Sequence[Any] | LateAnswer | None]
"""Answers an ordinary request, or has it wait; None for any other, and then nothing has happened."""
SHORT_WAYS: dict[ApiKey, ShortWay] = {}


def answers_shortly(api_key: ApiKey, way: ShortWay) -> None:
    """Register what is tried before a request is decoded; its handler sees what it leaves."""
    SHORT_WAYS[api_key] = way


class ShortWays:
    """The short ways of one dispatcher. Lives on the loop."""

    def __init__(
        self, services: Services, counters: Mapping[ApiKey, RequestCounters], long_way: Handler
    ) -> None:
        self._services = services
        self._long_way = long_way
        self._ways = {int(api_key): (way, counters[api_key]) for api_key, way in SHORT_WAYS.items()}

    def handle(self, connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        """One request, the short way or the long one."""
        if not self._try_answer(connection, frame, exchange):
            self._long_way(connection, frame, exchange)

    def _try_answer(self, connection: Connection, frame: memoryview, exchange: Exchange) -> bool:
        """Answer the request in a frame if it has a short way and is ordinary."""
        if len(frame) < 2:
            return False
        found = self._ways.get(int16_at(octets_of(frame), 0))
        services = self._services
        if found is None or services.quotas is not None or services.authorizer is not None:
            return False
        way, counters = found
        started = monotonic_seconds()
        try:
            parts = way(services, frame)
        except Exception:
            log.exception("a bug in %s, asked by %s", way.__name__, connection.peer)
            connection.close("a fault of the broker")
            return True
        if parts is None:
            return False
        counters.requests += 1
        counters.request_bytes += len(frame)
        if isinstance(parts, LateAnswer):
            parts.wait_for(connection, exchange, counters, started)
            return True
        for part in parts:
            counters.response_bytes += len(part)
        counters.seconds += monotonic_seconds() - started
        exchange.answer(parts)
        return True
