# cython: annotation_typing=False
"""The limit of requests in progress in the whole broker; at the limit no further request is read.

Compiled by Cython (request_limit.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

UNBOUNDED = 2**63 - 1


class RequestLimit:
    """Counts requests that the broker works on. Lives on the loop, one for all listeners.

    A request that waits for other clients (a fetch for data, a produce for followers) must not count: the
    requests that it waits for could then never be read.
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
        """Count a request of so many bytes."""
        self.open_requests += 1
        self.open_bytes += size
        self._update()

    def leave(self, size: int) -> None:
        """The request is answered or parked; stalled connections resume while the limit allows."""
        self.open_requests -= 1
        self.open_bytes -= size
        self._update()
        # A resumed connection may reach the limit again: the rest stays stalled, in order.
        while self._stalled and not self.is_full:
            resume = self._stalled.pop(next(iter(self._stalled)))
            resume()

    def _update(self) -> None:
        self.is_full = self.open_requests >= self.max_requests or self.open_bytes >= self.max_bytes

    def stall(self, connection: object, resume: Callable[[], None]) -> None:
        """Call `resume` once when the limit allows another request."""
        self._stalled[connection] = resume

    def remove(self, connection: object) -> None:
        """Remove a stalled connection."""
        self._stalled.pop(connection, None)

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Do not count a request while it waits for other clients."""
        self.leave(0)
        try:
            yield
        finally:
            self.enter(0)
