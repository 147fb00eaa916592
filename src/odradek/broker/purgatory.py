"""Requests that must wait: a produce until it is committed, a fetch until there is enough to read.

A waiter is woken when one of its keys makes progress, and given up when its time is over or its client gone.
Wakes are run once per turn of the loop, so that a produce that feeds a hundred fetches answers its own client
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from odradek.net.connection import Connection


class Waiter:
    """One parked request."""

    __slots__ = ("connection", "keys", "on_timeout", "timer", "try_complete")

    def __init__(
        self,
        keys: tuple[Hashable, ...],
        try_complete: Callable[[], bool],
        on_timeout: Callable[[], None],
        connection: Connection | None,
    ) -> None:
        self.connection = connection
        self.keys = keys
        self.try_complete = try_complete
        self.on_timeout = on_timeout
        self.timer: asyncio.TimerHandle | None = None


class Purgatory:
    """All waiters of one kind, `watching` their keys. Owned by the broker, on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.watching: dict[Hashable, dict[Waiter, None]] = {}
        self._woken: set[Hashable] = set()

    def __len__(self) -> int:
        return len({waiter for waiters in self.watching.values() for waiter in waiters})

    def park(
        self,
        keys: Iterable[Hashable],
        *,
        try_complete: Callable[[], bool],
        timeout_ms: int,
        on_timeout: Callable[[], None],
        connection: Connection | None = None,
    ) -> Waiter:
        """Wait for progress on any key: `try_complete` then answers and returns True, or returns False.

        With the connection of a client, nothing waits for longer than that lasts.
        """
        waiter = Waiter(tuple(keys), try_complete, on_timeout, connection)
        if connection is not None:
            connection.at_close[waiter] = partial(self.forget, waiter)
        for key in waiter.keys:
            self.watching.setdefault(key, {})[waiter] = None
        waiter.timer = self._loop.call_later(timeout_ms / 1000, self._expire, waiter)
        return waiter

    def wake(self, key: Hashable) -> None:
        """There was progress on this key."""
        if key in self.watching:
            if not self._woken:
                self._loop.call_soon(self._run_woken)
            self._woken.add(key)

    def forget(self, waiter: Waiter) -> None:
        """Stop waiting, for example because the client is gone."""
        if waiter.timer is not None:
            waiter.timer.cancel()
        if waiter.connection is not None:
            waiter.connection.at_close.pop(waiter, None)
        for key in waiter.keys:
            waiters = self.watching.get(key)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del self.watching[key]

    def _run_woken(self) -> None:
        woken, self._woken = self._woken, set()
        waiters = {waiter: None for key in woken for waiter in self.watching.get(key, ())}
        for waiter in waiters:
            if waiter.try_complete():
                self.forget(waiter)

    def _expire(self, waiter: Waiter) -> None:
        self.forget(waiter)
        waiter.on_timeout()
