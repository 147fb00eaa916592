"""Requests that name very many items: the loop serves other clients in between.

A row of a response takes some microseconds, so that a thousand of them keep others waiting for milliseconds.
Reading and writing the bytes of such a request cannot be interrupted; that takes a tenth of a second at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

Item = TypeVar("Item")
STEPS_PER_YIELD = 1000


class CooperativeYield:
    """Counts the steps of one request; after every `steps_per_yield` of them the loop serves others."""

    __slots__ = ("_steps", "_steps_per_yield")

    def __init__(self, steps_per_yield: int = STEPS_PER_YIELD) -> None:
        self._steps = 0
        self._steps_per_yield = steps_per_yield

    async def over(self, items: Iterable[Item]) -> AsyncIterator[Item]:
        """Each item; others run in between, and may change what is iterated."""
        for item in items:
            yield item
            self._steps += 1
            if self._steps % self._steps_per_yield == 0:
                await asyncio.sleep(0)
