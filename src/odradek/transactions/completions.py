"""Wakes requests that wait until the ending transaction of a transactional id is complete."""

from __future__ import annotations

import asyncio


class Completions:
    """The waiting requests by transactional id. Owned by the transaction service, on the broker's loop."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        """Transactional ids that are waited for."""
        return len(self._waiting)

    def notify(self, transactional_id: str) -> None:
        """The transaction of that id is complete."""
        for future in self._waiting.pop(transactional_id, ()):
            if not future.done():
                future.set_result(None)

    async def wait(self, transactional_id: str, timeout_s: float) -> None:
        """Return at the next completion of that id, or after the time-out."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(transactional_id, set()).add(future)
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._remove(transactional_id, future)

    def _remove(self, transactional_id: str, future: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(transactional_id)
        if waiting is not None:
            waiting.discard(future)
            if not waiting:
                del self._waiting[transactional_id]
