# cython: annotation_typing=False
"""Where the loop leaves things for the thread that polls: fetched data, errors, calls to make for it.

Compiled by Cython (inbox.pxd has the C types), or interpreted as is.
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

_LONGEST_LULL_S = 0.1
"""A connection that is lent is read on the loop again when nothing has come for so long."""


class Call(NamedTuple):
    """Something that must happen while the user polls, such as telling a listener."""

    function: Callable[[], Any]
    done: asyncio.Future[Any]


class FetchBuffer:
    """Filled on the loop, emptied by one thread that polls (or, for an async consumer, by one task)."""

    def __init__(self) -> None:
        self.fetched: deque[Fetched] = deque()
        self.errors: deque[BaseException] = deque()
        self.calls: deque[Call] = deque()
        self.fatal: BaseException | None = None
        """Every poll raises this: nothing will come any more unless the user wants something else."""
        self.on_news: Callable[[], object] = self._release
        self._loan: DirectRead | None = None
        self._lock = threading.Lock()
        self._waiting: Any = None

    # On the loop.

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for news at this moment."""
        return self._waiting is not None

    def lend(self, connection: BrokerConnection) -> None:
        """Have the thread that polls read from this connection itself, unless it does from another."""
        if self._loan is None or not self._loan.is_lent:
            self._loan = connection.lend(_LONGEST_LULL_S)

    def put(self, fetched: Fetched) -> None:
        """Data came."""
        self.fetched.append(fetched)
        self.on_news()

    def fail(self, error: BaseException) -> None:
        """The next poll raises this."""
        self.errors.append(error)
        self.on_news()

    def end(self, error: BaseException) -> None:
        """This poll and all later ones raise this."""
        self.fatal = error
        self.on_news()

    def problem(self) -> BaseException | None:
        """What a poll must raise now; the thread that polls asks."""
        return self.errors.popleft() if self.errors else self.fatal

    def fail_once(self, error: BaseException) -> None:
        """The next poll raises this, however often it is found out until then."""
        if (type(error), str(error)) not in [(type(one), str(one)) for one in list(self.errors)]:
            self.fail(error)

    def forget_errors_of(self, partition: TopicPartition) -> None:
        """Where the partition was does not matter any more; whoever polls is waiting for this call."""
        kept = [
            error
            for error in self.errors
            if not (isinstance(error, NoOffset) and error.partitions == [partition])
            and not (isinstance(error, LogTruncated) and error.partition == partition)
        ]
        self.errors.clear()
        self.errors.extend(kept)

    async def call(self, function: Callable[[], Any]) -> Any:
        """Have a function called during a poll, and wait for what it returns or raises."""
        call = Call(function, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        self.on_news()
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

    # The thread that polls.

    def has_demands(self) -> bool:
        """Whether there are calls to make, or errors to raise."""
        return bool(self.calls or self.errors) or self.fatal is not None

    @property
    def has_news(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self.fetched or self.errors or self.calls or self.fatal)

    def wait(self, timeout_s: float) -> None:
        """Until there is news, or the time is over."""
        loan = self._loan
        if loan is not None and loan.is_lent:
            self._wait_on_loan(loan, timeout_s)
            return
        mine = threading.Lock()
        mine.acquire()
        with self._lock:
            self._waiting = mine
        if not self.has_news:
            mine.acquire(timeout=timeout_s)
        self._waiting = None

    def _wait_on_loan(self, loan: DirectRead, timeout_s: float) -> None:
        with self._lock:
            self._waiting = loan
        if not self.has_news:
            loan.wait(timeout_s)
        with self._lock:
            self._waiting = None

    def catch_up(self) -> bool:
        """Read what has come, if that is left to us; whether there is news."""
        loan = self._loan
        if loan is not None and loan.is_lent:
            loan.wait(0)
        return self.has_news

    def keep(self, fetched: Fetched) -> None:
        """Data came to the thread that polls itself."""
        self.fetched.append(fetched)
