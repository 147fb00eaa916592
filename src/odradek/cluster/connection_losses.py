"""Repeats steps at the store whose connection was lost, while a broker starts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from odradek.coordination.errors import ConnectionLoss

logger = logging.getLogger(__name__)

RETRY_BACKOFF_S = 0.1

Result = TypeVar("Result")


async def repeat_when_lost(step: Callable[[], Awaitable[Result]], timeout_s: float) -> Result:
    """The result of a step that may be done twice; ConnectionLoss if there is none in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        try:
            return await step()
        except ConnectionLoss as error:
            if loop.time() >= deadline:
                raise
            logger.warning("the connection to the store was lost, trying again: %s", error)
            await asyncio.sleep(RETRY_BACKOFF_S)
