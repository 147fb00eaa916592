# cython: annotation_typing=False
"""What the loop passes to the polling thread: fetched data, errors, functions to call.

Compiled by Cython (fetch_buffer.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from odradek.client.consumer.errors import LogTruncated, NoOffset
from odradek.client.consumer.fetch.fetched import Fetched
from odradek.client.network.connection import BrokerConnection
from odradek.client.network.direct_read import DirectRead
from odradek.common.ids import TopicPartition

_MAX_IDLE_S = 0.1
"""Direct reading stops when no response has come for so long."""


class Call(NamedTuple):
    """A function to call during a poll, such as one of a rebalance listener."""

    function: Callable[[], Any]
    done: asyncio.Future[Any]


class FetchBuffer:
    """Filled on the loop, drained by the thread that polls (or by the task of an async consumer)."""

    def __init__(self) -> None:
        self.fetched: deque[Fetched] = deque()
        self.errors: deque[BaseException] = deque()
        self.calls: deque[Call] = deque()
        self.fatal: BaseException | None = None
        """Every poll raises this, until the subscription is changed."""
        self.on_change: Callable[[], object] = self._release
        self._direct_read: DirectRead | None = None
        self._lock = threading.Lock()
        self._waiting: Any = None

    # On the loop.

    @property
    def is_awaited(self) -> bool:
        """Whether a poll is waiting now."""
        return self._waiting is not None

    def start_direct_read(self, connection: BrokerConnection) -> None:
        """Have the polling thread read from this connection, unless it reads from another."""
        if self._direct_read is None or not self._direct_read.is_active:
            self._direct_read = connection.start_direct_read(_MAX_IDLE_S)

    def put(self, fetched: Fetched) -> None:
        """Add fetched data."""
        self.fetched.append(fetched)
        self.on_change()

    def fail(self, error: BaseException) -> None:
        """The next poll raises this."""
        self.errors.append(error)
        self.on_change()

    def end(self, error: BaseException) -> None:
        """This poll and all later ones raise this."""
        self.fatal = error
        self.on_change()

    def problem(self) -> BaseException | None:
        """What this poll must raise, if anything."""
        return self.errors.popleft() if self.errors else self.fatal

    def fail_once(self, error: BaseException) -> None:
        """The next poll raises this, unless it already raises the same error."""
        if (type(error), str(error)) not in [(type(one), str(one)) for one in list(self.errors)]:
            self.fail(error)

    def remove_errors_of(self, partition: TopicPartition) -> None:
        """The position of the partition has changed; called while no poll runs."""
        kept = [
            error
            for error in self.errors
            if not (isinstance(error, NoOffset) and error.partitions == [partition])
            and not (isinstance(error, LogTruncated) and error.partition == partition)
        ]
        self.errors.clear()
        self.errors.extend(kept)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Have a function called during a poll; returns or raises what it does."""
        call = Call(function, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        self.on_change()
        try:
            return await call.done
        finally:
            if call in self.calls:
                self.calls.remove(call)

    def _release(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.release()

    # On the polling thread.

    def has_demands(self) -> bool:
        """Whether there are calls to make, or errors to raise."""
        return bool(self.calls or self.errors) or self.fatal is not None

    @property
    def has_pending(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.fetched or self.errors or self.calls or self.fatal)

    def wait(self, timeout_s: float) -> None:
        """Wait until there is anything to look at, or for `timeout_s`."""
        direct_read = self._direct_read
        if direct_read is not None and direct_read.is_active:
            self._wait_directly(direct_read, timeout_s)
            return
        mine = threading.Lock()
        mine.acquire()
        with self._lock:
            self._waiting = mine
        if not self.has_pending:
            mine.acquire(timeout=timeout_s)
        self._waiting = None

    def _wait_directly(self, direct_read: DirectRead, timeout_s: float) -> None:
        with self._lock:
            self._waiting = direct_read
        if not self.has_pending:
            direct_read.wait(timeout_s)
        with self._lock:
            self._waiting = None

    def read_available(self) -> bool:
        """Read what has arrived, if this thread reads directly; whether there is anything to look at."""
        direct_read = self._direct_read
        if direct_read is not None and direct_read.is_active:
            direct_read.wait(0)
        return self.has_pending

    def keep(self, fetched: Fetched) -> None:
        """Add data that the polling thread has read itself."""
        self.fetched.append(fetched)
