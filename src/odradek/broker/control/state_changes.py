"""Wakes requests that wait until the controller's decisions have been applied to this broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class StateChanges:
    """Conditions over the metadata image and the replicas of this broker, checked when these change.

    Owned by the broker's services; lives on its event loop. `notify` is called after every request of the
    controller: nothing else changes what is waited for.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[bool]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def notify(self) -> None:
        """Have every waiting condition checked again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(True)
        self._waiting.clear()

    async def wait_until(self, condition: Callable[[], bool], deadline: float | None = None) -> bool:
        """Wait until the condition holds; False if it does not by `deadline`, in the loop's time."""
        while not condition():
            if not await self._next(deadline):
                return condition()
        return True

    async def _next(self, deadline: float | None) -> bool:
        """Whether there was a change before the deadline."""
        loop = asyncio.get_running_loop()
        if deadline is not None and loop.time() >= deadline:
            return False
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(future)
        timer = None if deadline is None else loop.call_at(deadline, _time_out, future)
        try:
            return await future
        finally:
            self._waiting.discard(future)
            if timer is not None:
                timer.cancel()


def _time_out(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)
