# cython: annotation_typing=False
"""Times out what waits too long, without a timer of the loop for each.

Nearly all requests of a broker wait for one of a few timeouts, and nearly none of them times out. So there is
one queue for each timeout, whose first is the next to expire, and one timer for all queues. Compiled by
Cython (timeouts.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import cython

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

# So many queues may be empty; they are kept because the next request probably has the same timeout.
_MAX_EMPTY_QUEUES = 64


class Timeout:
    """Waits until `deadline`, unless it is cancelled before. A subclass says for what.

    While it waits it is linked with its neighbours in a circular list, whose head is a Timeout as well.
    """

    __slots__ = ("_next", "_previous", "deadline", "is_over")

    # Set when it begins to wait.
    deadline: float
    is_over: bool
    _previous: Timeout
    _next: Timeout


# The neighbour of what does not wait.
_NOWHERE = Timeout()


class Timeouts:
    """Everything that waits in one place; calls `on_timeout` for what is not over in time. On the loop.

    `queues`: by timeout, the head of a list whose first entry is the next of them to expire. The timer is set
    for the first of all, or for an earlier one that was cancelled.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, on_timeout: Callable[[Any], None]) -> None:
        self._loop = loop
        self._on_timeout = on_timeout
        self.queues: dict[int, Timeout] = {}
        self._max_queues = _MAX_EMPTY_QUEUES
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, timeout: Timeout, timeout_ms: int) -> None:
        """Have it expire in so many milliseconds."""
        deadline = timeout.deadline = monotonic_seconds() + timeout_ms / 1000
        head = self.queues.get(timeout_ms)
        if head is None:
            head = self._add_queue(timeout_ms, deadline)
        last = head._previous
        last._next = head._previous = timeout
        timeout._previous, timeout._next = last, head
        timeout.is_over = False
        self._count += 1

    def cancel(self, timeout: Timeout) -> None:
        """It is over before its time."""
        if not timeout.is_over:
            self._remove(timeout)

    def _remove(self, timeout: Timeout) -> None:
        previous, following = timeout._previous, timeout._next
        previous._next, following._previous = following, previous
        # Two that are over must not keep each other in memory.
        timeout._previous = timeout._next = _NOWHERE
        timeout.is_over = True
        self._count -= 1

    def _add_queue(self, timeout_ms: int, deadline: float) -> Timeout:
        """A queue for timeouts of this length; its first will be over at `deadline`."""
        if len(self.queues) >= self._max_queues:
            self._drop_empty_queues()
        head = self.queues[timeout_ms] = Timeout()
        head._previous = head._next = head
        if self._timer is None or deadline < self._timer_deadline:
            self._set_timer(deadline)
        return head

    def _drop_empty_queues(self) -> None:
        self.queues = {timeout_ms: head for timeout_ms, head in self.queues.items() if head._next is not head}
        self._max_queues = 2 * len(self.queues) + _MAX_EMPTY_QUEUES

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = self._loop.call_later(max(deadline - monotonic_seconds(), 0), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = monotonic_seconds()
        expired = []
        for head in self.queues.values():
            first = head._next
            while first is not head and first.deadline <= now:
                self._remove(first)
                expired.append(first)
                first = head._next
        self._drop_empty_queues()
        if self.queues:
            self._set_timer(min([head._next.deadline for head in self.queues.values()]))
        for one in sorted(expired, key=_deadline):
            self._on_timeout(one)


def _deadline(timeout: Timeout) -> float:
    return timeout.deadline
