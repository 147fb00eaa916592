"""Tasks that run until they are told to end."""

from __future__ import annotations

import asyncio
import contextlib


async def end(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, if there is one, and wait until it is over."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
