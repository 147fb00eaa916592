"""Requests that name very many things: the loop serves whoever else is there in between.

A row of an answer takes some microseconds, so that a thousand of them keep others waiting for milliseconds.
Reading and writing the bytes of such a request cannot be interrupted; that takes a tenth of a second at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

Thing = TypeVar("Thing")
STEPS_PER_YIELD = 1000


class CooperativeYield:
    """Counts the steps of one request; after some of them others have their turn."""

    __slots__ = ("_steps", "_steps_per_turn")

    def __init__(self, steps_per_turn: int = STEPS_PER_YIELD) -> None:
        self._steps = 0
        self._steps_per_turn = steps_per_turn

    async def over(self, things: Iterable[Thing]) -> AsyncIterator[Thing]:
        """Each of them, with turns of others in between; whatever is iterated must bear that."""
        for thing in things:
            yield thing
            self._steps += 1
            if self._steps % self._steps_per_turn == 0:
                await asyncio.sleep(0)
