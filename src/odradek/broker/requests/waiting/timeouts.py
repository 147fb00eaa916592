# cython: annotation_typing=False
"""Times out what waits too long, without a timer of the loop for each.

Nearly all requests of a broker wait for one of a few timeouts, and nearly none of them times out. So there is
one queue for each timeout, whose first is the next to expire, and one timer for all queues. Compiled by
Cython (timeouts.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

# A queue may hold as many entries that are over as entries that wait, and these.
_MIN_STALE = 64


class Timeout:
    """Waits until `deadline`, unless it is cancelled before. A subclass says for what."""

    __slots__ = ("deadline", "is_over")

    deadline: float

    def __init__(self) -> None:
        self.deadline = 0.0
        self.is_over = False


class Timeouts:
    """Everything that waits in one place; calls `on_timeout` for what is not over in time. On the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[Any], None]) -> None:
        self._loop = loop
        self._on_timeout = on_timeout
        self._queues: dict[int, deque[Timeout]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0
        self._stale = 0

    def __len__(self) -> int:
        return self._count

    def add(self, timeout: Timeout, timeout_ms: int) -> None:
        """Have it expire in so many milliseconds."""
        timeout.deadline = monotonic_seconds() + timeout_ms / 1000
        queue = self._queues.get(timeout_ms)
        if queue is None:
            self._queues[timeout_ms] = deque((timeout,))
            self._arm()  # it may be the first to expire
        else:
            queue.append(timeout)
        self._count += 1

    def cancel(self, timeout: Timeout) -> None:
        """It is over before its time."""
        if timeout.is_over:
            return
        timeout.is_over = True
        self._count -= 1
        self._stale += 1
        if self._stale > self._count + _MIN_STALE:
            self._drop_stale()

    def _drop_stale(self) -> None:
        self._stale = 0
        for timeout_ms, queue in list(self._queues.items()):
            waiting = deque(one for one in queue if not one.is_over)
            if waiting:
                self._queues[timeout_ms] = waiting
            else:
                del self._queues[timeout_ms]

    def _arm(self) -> None:
        """Set the timer for whatever expires first."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queues:
            first = min(queue[0].deadline for queue in self._queues.values())
            self._timer = self._loop.call_later(max(first - monotonic_seconds(), 0), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = monotonic_seconds()
        expired = []
        for timeout_ms, queue in list(self._queues.items()):
            while queue and (queue[0].is_over or queue[0].deadline <= now):
                one = queue.popleft()
                if one.is_over:
                    self._stale -= 1
                else:
                    one.is_over = True
                    self._count -= 1
                    expired.append(one)
            if not queue:
                del self._queues[timeout_ms]
        self._arm()
        for one in sorted(expired, key=_deadline):
            self._on_timeout(one)


def _deadline(timeout: Timeout) -> float:
    return timeout.deadline
