# cython: annotation_typing=False
"""Requests that wait for their answer on one connection: ids, order, deadlines. No I/O, no clock.

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
    from cython.cimports.odradek.common.byte_access import int32_at, octets_of
else:
    from odradek.common.byte_access import int32_at, octets_of

MAX_CORRELATION_ID = 2**31 - 1


class PendingResponse(Protocol):
    """Who waits for an answer: an asyncio.Future, or a function by `CallbackHandler`."""

    def done(self) -> bool:
        """Whether nobody waits any more."""

    def set_result(self, frame: memoryview, /) -> None:
        """The answer came."""

    def set_exception(self, error: BaseException, /) -> None:
        """It never will."""

    def exception(self) -> BaseException | None:
        """The error has been seen."""


class ResponseHandler:
    """A `PendingResponse` that a thread other than the loop may complete during direct reading."""

    __slots__ = ()

    def take(self, frame: memoryview) -> bool:
        """Take an answer that is as usual; False, and nothing is done, if it is a matter for the loop."""
        raise NotImplementedError

    def go_on(self, is_on_loan: bool) -> None:
        """Do what was put off when the answer was taken (see `Loan.put_off`); on the loop, or not."""
        raise NotImplementedError

    def set_exception(self, error: BaseException, /) -> None:
        """On the loop: taking it, or going on, was broken off."""
        raise NotImplementedError


class CallbackHandler:
    """An answer that goes to a function at once, without a turn of the loop, for those in a hurry.

    The function gets the frame, or the reason why there is none, and must not raise.
    """

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[memoryview | None, BaseException | None], None]) -> None:
        self._function = function

    def done(self) -> bool:
        """There is always somebody."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """The answer came."""
        self._function(frame, None)

    def set_exception(self, error: BaseException, /) -> None:
        """It never will."""
        self._function(None, error)

    def exception(self) -> BaseException | None:
        """Nothing is kept here."""
        return None


class Waiting:
    """One request on its way; `answer` gets the frame of its answer."""

    __slots__ = ("answer", "api_key", "correlation_id", "deadline_ms", "timeout_ms")

    def __init__(
        self,
        correlation_id: int,
        api_key: ApiKey,
        timeout_ms: int,
        deadline_ms: float,
        answer: PendingResponse,
    ) -> None:
        self.correlation_id = correlation_id
        self.api_key = api_key
        self.timeout_ms = timeout_ms
        self.deadline_ms = deadline_ms
        self.answer = answer


class InFlight:
    """The requests of one connection, oldest first; a broker answers them in this order."""

    __slots__ = ("_last_id", "_waiting")

    def __init__(self, last_id: int = 0) -> None:
        self._waiting: deque[Waiting] = deque()
        self._last_id = last_id

    def __len__(self) -> int:
        return len(self._waiting)

    def next_id(self) -> int:
        """A correlation id for a request, answered or not."""
        self._last_id = self._last_id + 1 if self._last_id < MAX_CORRELATION_ID else 1
        return self._last_id

    def add(self, waiting: Waiting) -> None:
        """A request was sent."""
        self._waiting.append(waiting)

    def answered(self, frame: memoryview) -> Waiting:
        """The request that a frame answers; BadResponse unless it is the oldest."""
        correlation_id = int32_at(octets_of(frame), 0)  # no answer is shorter
        if not self._waiting:
            raise BadResponse(f"an answer numbered {correlation_id}, and nothing was asked")
        oldest = self._waiting[0]
        if oldest.correlation_id != correlation_id:
            raise BadResponse(f"answer {correlation_id} where {oldest.correlation_id} is due")
        return self._waiting.popleft()

    def next_deadline_ms(self) -> float | None:
        """When the next request has waited too long."""
        return min((waiting.deadline_ms for waiting in self._waiting), default=None)

    def overdue(self, now_ms: float) -> Waiting | None:
        """The first request that has waited too long."""
        return next((waiting for waiting in self._waiting if waiting.deadline_ms <= now_ms), None)

    def abandon(self) -> list[Waiting]:
        """All that will never be answered."""
        left = list(self._waiting)
        self._waiting.clear()
        return left
