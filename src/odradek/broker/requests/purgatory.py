# cython: annotation_typing=False
"""Requests that must wait: a produce until it is committed, a fetch until there is enough to read.

A waiter is woken when one of its keys makes progress, and given up when its time is over or its client gone.
Wakes are run once per turn of the loop, so that a produce that feeds a hundred fetches answers its own client
first. Compiled by Cython (purgatory.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable
from functools import partial

from odradek.net.connection import Connection


class Waiter:
    """One parked request; an heir says how it ends. Owned by its purgatory while it waits.

    With the `connection` of a client, nothing waits for longer than that lasts.
    """

    __slots__ = ("connection", "keys", "timer")

    connection: Connection | None
    keys: tuple[Hashable, ...]
    timer: asyncio.TimerHandle | None

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection
        self.keys = ()
        self.timer = None

    def try_complete(self) -> bool:
        """There was progress: answer and return True, or return False to wait on."""
        raise NotImplementedError

    def on_timeout(self) -> None:
        """It has waited long enough."""
        raise NotImplementedError


class CallingWaiter(Waiter):
    """A waiter that others act for."""

    __slots__ = ("_on_timeout", "_try_complete")

    def __init__(
        self,
        try_complete: Callable[[], bool],
        on_timeout: Callable[[], None],
        connection: Connection | None,
    ) -> None:
        super().__init__(connection)
        self._try_complete = try_complete
        self._on_timeout = on_timeout

    def try_complete(self) -> bool:
        """As it was told."""
        return self._try_complete()

    def on_timeout(self) -> None:
        """As it was told."""
        self._on_timeout()


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
        """Wait for progress on any key: `try_complete` then answers and returns True, or returns False."""
        waiter = CallingWaiter(try_complete, on_timeout, connection)
        self.add(waiter, tuple(keys), timeout_ms)
        return waiter

    def add(self, waiter: Waiter, keys: tuple[Hashable, ...], timeout_ms: int) -> None:
        """Have a waiter wait for progress on any of these keys."""
        waiter.keys = keys
        connection = waiter.connection
        if connection is not None:
            connection.at_close[waiter] = partial(self.forget, waiter)
        watching = self.watching
        for key in keys:
            waiters = watching.get(key)
            if waiters is None:
                watching[key] = {waiter: None}
            else:
                waiters[waiter] = None
        waiter.timer = self._loop.call_later(timeout_ms / 1000, self._expire, waiter)

    def wake(self, key: Hashable) -> None:
        """There was progress on this key."""
        if key in self.watching:
            if not self._woken:
                self._loop.call_soon(self._run_woken)
            self._woken.add(key)

    def forget(self, waiter: Waiter) -> None:
        """Stop waiting, for example because the client is gone."""
        timer = waiter.timer
        if timer is not None:
            timer.cancel()
        connection = waiter.connection
        if connection is not None:
            connection.at_close.pop(waiter, None)
        watching = self.watching
        for key in waiter.keys:
            waiters = watching.get(key)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del watching[key]

    def _run_woken(self) -> None:
        woken, self._woken = self._woken, set()
        waiters: dict[Waiter, None] = {}
        for key in woken:
            waiters.update(self.watching.get(key, ()))
        for waiter in waiters:
            if waiter.try_complete():
                self.forget(waiter)

    def _expire(self, waiter: Waiter) -> None:
        self.forget(waiter)
        waiter.on_timeout()
