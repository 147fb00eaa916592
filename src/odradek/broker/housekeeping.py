"""What a broker does by the clock: flush, checkpoint, retention, the removal of dead files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from odradek.broker.config.broker_config import BrokerConfig
from odradek.common.clock import Clock
from odradek.log.manager import LogManager

logger = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1000
GARBAGE_CHECK_MS = 5000


class Housekeeping:
    """Periodic tasks over all logs. Decisions are taken on the loop; what may block runs in the pool."""

    def __init__(self, logs: LogManager, config: BrokerConfig, clock: Clock, pool: Executor) -> None:
        self._logs = logs
        self._config = config
        self._clock = clock
        self._pool = pool
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; call it on the running loop."""
        manager = self._config.log_manager
        for interval_ms, chore in (
            (FLUSH_CHECK_MS, self.flush_due_logs),
            (self._config.replica_high_watermark_checkpoint_interval_ms, self.write_checkpoints),
            (manager.log_retention_check_interval_ms, self.enforce_retention),
            (GARBAGE_CHECK_MS, self.remove_garbage),
        ):
            self._tasks.append(asyncio.create_task(self._every(interval_ms, chore)))

    async def stop(self) -> None:
        """End all tasks; a chore that runs is finished first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _every(self, interval_ms: int, chore: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            try:
                await asyncio.shield(chore())
            except OSError:
                logger.exception("%s failed; it is tried again later", chore.__name__)

    async def flush_due_logs(self) -> None:
        """Sync the logs whose `flush.ms` is over."""
        loop = asyncio.get_running_loop()
        for log in list(self._logs.logs.values()):
            if log.wants_flush(self._clock.now_ms()):
                job = log.begin_flush(self._clock.now_ms())
                await loop.run_in_executor(self._pool, job.run)
                log.complete_flush(job)

    async def write_checkpoints(self) -> None:
        """Write down how far each log is synced, committed, and deleted."""
        loop = asyncio.get_running_loop()
        for job in self._logs.checkpoints():
            await loop.run_in_executor(self._pool, job.run)

    async def enforce_retention(self) -> None:
        """Give up segments whose time is over."""
        self._logs.enforce_retention(self._clock.now_ms())

    async def remove_garbage(self) -> None:
        """Remove files that were given up long enough ago."""
        due = self._logs.due_garbage(self._clock.now_ms())
        if due:
            await asyncio.get_running_loop().run_in_executor(self._pool, self._logs.remove_garbage, due)
