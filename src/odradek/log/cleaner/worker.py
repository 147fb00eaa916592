"""The loop of the cleaner: `log.cleaner.threads` runs at a time, a pause when there is nothing to clean."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from odradek.log.cleaner.manager import CleanerManager, CleaningResult

logger = logging.getLogger(__name__)


class CleanerWorker:
    """Runs the manager's steps in threads of its own; owned by the event loop that owns the logs.

    `report` is called after every run, successful or not: the broker takes a failed disk offline there.
    """

    def __init__(
        self, manager: CleanerManager, now_ms: Callable[[], int], report: Callable[[CleaningResult], None]
    ) -> None:
        self.manager = manager
        self._now_ms = now_ms
        self._report = report
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Clean until `stop` is called; returns at once if the cleaner is off."""
        config = self.manager.config
        if not config.runs:
            return
        threads = config.log_cleaner_threads
        with ThreadPoolExecutor(threads, thread_name_prefix="log-cleaner") as pool:
            await asyncio.gather(*(self._loop(pool) for _ in range(threads)))

    def stop(self) -> None:
        """Make `run` return soon; current runs are aborted."""
        self._stopping.set()
        for partition in self.manager.running:
            self.manager.abort(partition)

    async def _loop(self, pool: ThreadPoolExecutor) -> None:
        while not self._stopping.is_set():
            outcome = await self.run_once(pool)
            if outcome is not None:
                self._report(outcome)
            if outcome is None or outcome.problem is not None:
                await self._back_off()

    async def _back_off(self) -> None:
        with contextlib.suppress(TimeoutError):
            seconds = self.manager.config.log_cleaner_backoff_ms / 1000
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def run_once(self, pool: ThreadPoolExecutor) -> CleaningResult | None:
        """One run over the dirtiest log; None if no log needs it."""
        cleaning = self.manager.begin(self._now_ms())
        if cleaning is None:
            return None
        loop = asyncio.get_running_loop()
        steps = self.manager.steps(cleaning)
        step = next(steps)
        try:
            while True:
                try:
                    answer = await loop.run_in_executor(pool, step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as stop:
            outcome: CleaningResult = stop.value
            return outcome
