"""Requests that wait for their answer on one connection: ids, order, deadlines. No I/O, no clock."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from odradek.client.answers import BadAnswer
from odradek.protocol.api_key import ApiKey

MAX_CORRELATION_ID = 2**31 - 1


@dataclass(slots=True, eq=False)
class Waiting:
    """One request on its way; `answer` gets the frame of its answer."""

    correlation_id: int
    api_key: ApiKey
    timeout_ms: int
    deadline_ms: float
    answer: asyncio.Future[memoryview]


class InFlight:
    """The requests of one connection, oldest first; a broker answers them in this order."""

    __slots__ = ("_last_id", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._last_id = 0

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
        """The request that a frame answers; BadAnswer unless it is the oldest."""
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._waiting:
            raise BadAnswer(f"an answer numbered {correlation_id}, and nothing was asked")
        oldest = self._waiting[0]
        if oldest.correlation_id != correlation_id:
            raise BadAnswer(f"answer {correlation_id} where {oldest.correlation_id} is due")
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
