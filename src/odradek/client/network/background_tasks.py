"""Tasks for what must be awaited, such as connecting and requesting metadata."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_log = logging.getLogger(__name__)


class BackgroundTasks:
    """At most one task for each key. Owned by a sender or a fetcher, on its loop.

    `pump` is called when one has ended.
    """

    def __init__(self, owner: str, loop: asyncio.AbstractEventLoop, pump: Callable[[], object]) -> None:
        self._owner = owner
        self._loop = loop
        self._pump = pump
        self._tasks: dict[object, asyncio.Task[None]] = {}
        self._is_stopped = False

    def begin(self, what: object, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task, unless it is running or this is closed."""
        if what in self._tasks or self._is_stopped:
            return
        task = self._tasks[what] = self._loop.create_task(work())

        def done(task: asyncio.Task[None]) -> None:
            del self._tasks[what]
            if not task.cancelled():
                error = task.exception()
                if error is not None:
                    _log.error("the %s's work on %s failed", self._owner, what, exc_info=error)
                self._pump()

        task.add_done_callback(done)

    def stop(self) -> None:
        """Cancel all tasks and start no more."""
        self._is_stopped = True
        for task in self._tasks.values():
            task.cancel()
