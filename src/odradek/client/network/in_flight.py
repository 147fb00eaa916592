# cython: annotation_typing=False
"""Requests in flight on one connection: correlation ids, order, deadlines. No I/O, no clock.

Compiled by Cython (in_flight.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

import cython

from odradek.client.network.responses import BadResponse
from odradek.protocol.api_key import ApiKey

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int32_at, raw_bytes
else:
    from odradek.common.byte_access import int32_at, raw_bytes

MAX_CORRELATION_ID = 2**31 - 1


class PendingResponse(Protocol):
    """Receives a response: an asyncio.Future, or a function by `CallbackHandler`."""

    def done(self) -> bool:
        """Whether the response is not needed any more."""

    def set_result(self, frame: memoryview, /) -> None:
        """The response arrived."""

    def set_exception(self, error: BaseException, /) -> None:
        """The request failed."""

    def exception(self) -> BaseException | None:
        """Marks the error as retrieved."""


class ResponseHandler:
    """A `PendingResponse` that a thread other than the loop may complete during direct reading."""

    __slots__ = ()

    def handle(self, frame: memoryview) -> bool:
        """Handle an ordinary response; False, without any effect, if the loop must handle it."""
        raise NotImplementedError

    def run_deferred(self, is_direct: bool) -> None:
        """Do what was deferred when the response was handled (see `DirectRead.deferred`)."""
        raise NotImplementedError

    def set_exception(self, error: BaseException, /) -> None:
        """On the loop: handling it, or the deferred step, raised."""
        raise NotImplementedError


class CallbackHandler:
    """Passes a response to a function at once, without another iteration of the loop.

    The function gets the frame or the error, and must not raise.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[memoryview | None, BaseException | None], None]) -> None:
        self._function = function

    def done(self) -> bool:
        """Always False."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """The response arrived."""
        self._function(frame, None)

    def set_exception(self, error: BaseException, /) -> None:
        """The request failed."""
        self._function(None, error)

    def exception(self) -> BaseException | None:
        """Not kept."""
        return None


class InFlightRequest:
    """One request in flight; `handler` gets the frame of its response."""

    __slots__ = ("api_key", "correlation_id", "deadline_ms", "handler", "timeout_ms")

    def __init__(
        self,
        correlation_id: int,
        api_key: ApiKey,
        timeout_ms: int,
        deadline_ms: float,
        handler: PendingResponse,
    ) -> None:
        self.correlation_id = correlation_id
        self.api_key = api_key
        self.timeout_ms = timeout_ms
        self.deadline_ms = deadline_ms
        self.handler = handler


class InFlight:
    """The requests of one connection, oldest first; a broker responds in this order."""

    __slots__ = ("_last_id", "_waiting")

    def __init__(self, last_id: int = 0) -> None:
        self._waiting: deque[InFlightRequest] = deque()
        self._last_id = last_id

    def __len__(self) -> int:
        return len(self._waiting)

    def next_id(self) -> int:
        """The next correlation id."""
        self._last_id = self._last_id + 1 if self._last_id < MAX_CORRELATION_ID else 1
        return self._last_id

    def add(self, waiting: InFlightRequest) -> None:
        """A request was sent."""
        self._waiting.append(waiting)

    def match(self, frame: memoryview) -> InFlightRequest:
        """The request of a response; BadResponse unless it is the oldest."""
        correlation_id = int32_at(raw_bytes(frame), 0)  # no response is shorter
        if not self._waiting:
            raise BadResponse(f"a response with correlation id {correlation_id}, without a request in flight")
        oldest = self._waiting[0]
        if oldest.correlation_id != correlation_id:
            raise BadResponse(f"response {correlation_id} where {oldest.correlation_id} is expected")
        return self._waiting.popleft()

    def next_deadline_ms(self) -> float | None:
        """The earliest deadline."""
        return min((waiting.deadline_ms for waiting in self._waiting), default=None)

    def overdue(self, now_ms: float) -> InFlightRequest | None:
        """The first request whose deadline has passed."""
        return next((waiting for waiting in self._waiting if waiting.deadline_ms <= now_ms), None)

    def abandon(self) -> list[InFlightRequest]:
        """Remove and return all requests."""
        left = list(self._waiting)
        self._waiting.clear()
        return left
