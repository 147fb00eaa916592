# cython: annotation_typing=False
"""How many requests may be under way in the whole broker; beyond that nobody's next request is read.

Compiled by Cython (gate.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

UNBOUNDED = 2**63 - 1


class RequestLimit:
    """Counts requests that were read and wait for nobody but us. Lives on the loop, one for all listeners.

    A request that waits for other clients (a fetch for data, a produce for followers) must not count: what
    it waits for could then never be read.
    """

    __slots__ = ("_stalled", "is_full", "max_bytes", "max_requests", "open_bytes", "open_requests")

    def __init__(self, max_requests: int = UNBOUNDED, max_bytes: int = UNBOUNDED) -> None:
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.open_requests = 0
        self.open_bytes = 0
        self.is_full = False
        self._stalled: dict[object, Callable[[], None]] = {}

    def enter(self, size: int) -> None:
        """A request of so many bytes is under way."""
        self.open_requests += 1
        self.open_bytes += size
        self._judge()

    def leave(self, size: int) -> None:
        """It is answered, or parked; whoever was stalled may go on if there is room now."""
        self.open_requests -= 1
        self.open_bytes -= size
        self._judge()
        # Those who go on may fill it again: the rest then stays stalled, in the order in which they came.
        while self._stalled and not self.is_full:
            go_on = self._stalled.pop(next(iter(self._stalled)))
            go_on()

    def _judge(self) -> None:
        self.is_full = self.open_requests >= self.max_requests or self.open_bytes >= self.max_bytes

    def stall(self, who: object, go_on: Callable[[], None]) -> None:
        """Call `go_on` once when there is room again."""
        self._stalled[who] = go_on

    def forget(self, who: object) -> None:
        """Whoever was stalled is gone."""
        self._stalled.pop(who, None)

    @contextmanager
    def parked(self) -> Iterator[None]:
        """For a request that counts: while this lasts it waits for others, and does not."""
        self.leave(0)
        try:
            yield
        finally:
            self.enter(0)
