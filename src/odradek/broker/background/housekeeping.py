"""Periodic work of a broker: flush, checkpoint, retention, ISR checks, removal of deleted files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor

from odradek.broker.background.log_flusher import LogFlusher
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.common.clock import Clock
from odradek.log.directories.log_directory import CheckpointJob
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.replication.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

FLUSH_CHECK_MS = 1000
GARBAGE_CHECK_MS = 5000
ROOM_CHECK_MS = 5000
IDLE_CHECK_MS = 5000
LOGS_PER_YIELD = 50
"""Logs handled before the loop serves clients again: a task takes one or two microseconds per log."""


class Housekeeping:
    """Periodic tasks over all logs. Decisions are taken on the loop; what may block runs in the pool.

    The loop serves clients after every few logs, and no two tasks start at the same moment. When a disk
    fails, its directory goes offline and the task continues with the others.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        config: BrokerConfig,
        clock: Clock,
        pool: Executor,
        flusher: LogFlusher,
        on_space: Callable[[], Awaitable[None]],
    ) -> None:
        """`on_space`: called every few seconds while a directory accepts writes."""
        self._replicas = replicas
        self._on_space = on_space
        self._logs = replicas.logs
        self._config = config
        self._clock = clock
        self._pool = pool
        self._flusher = flusher
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin; call it on the running loop."""
        manager = self._config.log_manager
        actions = (
            (FLUSH_CHECK_MS, self.flush_due_logs),
            (self._checkpoint_interval_ms(), self.write_checkpoints),
            (manager.log_retention_check_interval_ms, self.enforce_retention),
            (manager.producer_id_expiration_check_interval_ms, self.remove_expired_producers),
            (GARBAGE_CHECK_MS, self.remove_garbage),
            (ROOM_CHECK_MS, self.look_for_room),
            (IDLE_CHECK_MS, self.give_back_idle_room),
            (self._config.replica_lag_time_max_ms // 2, self.shrink_isrs),
        )
        for number, (interval_ms, action) in enumerate(actions, 1):
            if interval_ms <= 0:
                continue
            delay_ms = interval_ms * number / len(actions)
            self._tasks.append(asyncio.create_task(self._every(interval_ms, action, delay_ms)))

    def _checkpoint_interval_ms(self) -> int:
        """The shortest interval of the three kinds of checkpoint, which are written together; 0 is none."""
        intervals = (
            self._config.replica_high_watermark_checkpoint_interval_ms,
            self._config.log_manager.log_flush_offset_checkpoint_interval_ms,
            self._config.log_manager.log_flush_start_offset_checkpoint_interval_ms,
        )
        return min((one for one in intervals if one > 0), default=0)

    async def stop(self) -> None:
        """End all tasks; an action that runs is finished first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _every(
        self, interval_ms: int, action: Callable[[], Awaitable[None]], first_delay_ms: float
    ) -> None:
        delay_ms = first_delay_ms
        while True:
            await asyncio.sleep(delay_ms / 1000)
            delay_ms = interval_ms
            running = asyncio.ensure_future(action())
            try:
                await asyncio.shield(running)
            except asyncio.CancelledError:
                await asyncio.gather(running, return_exceptions=True)
                raise
            except Exception:  # a task root: the other actions, and the next round, must not suffer
                logger.exception("%s failed; it is tried again later", action.__name__)

    async def _some_logs(self) -> AsyncIterator[list[PartitionLog]]:
        """The logs that serve now, some at a time; before it is reached a log may be dropped or replaced."""
        logs = list(self._logs.logs.values())
        for start in range(0, len(logs), LOGS_PER_YIELD):
            yield logs[start : start + LOGS_PER_YIELD]
            await asyncio.sleep(0)

    def _serves(self, log: PartitionLog) -> bool:
        return self._logs.get(log.partition) is log

    async def flush_due_logs(self) -> None:
        """Sync the logs whose `flush.ms` is over."""
        async for logs in self._some_logs():
            for log in logs:
                if log.wants_flush(self._clock.now_ms()) and self._serves(log):
                    await self._flusher.flush(log)

    def _failed(self, log: PartitionLog, error: StorageError) -> None:
        if self._serves(log):  # else its files went while they were synced
            self._replicas.disk_failed(log.partition, error)

    async def write_checkpoints(self) -> None:
        """Write down how far each log is synced, committed, and deleted."""
        for job in await self._checkpoints():
            try:
                await self._in_pool(job.run)
            except OSError as error:
                failure = StorageError(error, job.directory.path)
                self._replicas.directory_failed(job.directory, failure)

    async def _checkpoints(self) -> list[CheckpointJob]:
        logs = list(self._logs.logs.values())
        checkpoints = self._logs.begin_checkpoints()
        async for some in self._some_logs():
            for log in some:
                self._logs.note_checkpoints(log, checkpoints)
        if list(self._logs.logs.values()) == logs:
            return checkpoints.jobs()
        # A log that came or moved meanwhile may be in the files by now, and must not fall out of them again.
        return self._logs.checkpoints()

    async def enforce_retention(self) -> None:
        """Delete segments beyond their retention, one log at a time."""
        for log in list(self._logs.logs.values()):
            if self._serves(log):
                self._logs.enforce_retention_of(log, self._clock.now_ms())
            await asyncio.sleep(0)
        self._replicas.drop_offline()

    async def remove_expired_producers(self) -> None:
        """Remove producers that have not written for `producer.id.expiration.ms`."""
        async for logs in self._some_logs():
            for log in filter(self._serves, logs):
                self._logs.remove_expired_producers(log, self._clock.now_ms())

    async def look_for_room(self) -> None:
        """Report when a full disk has space again, and retry the partitions that it could not take."""
        for directory in self._logs.online_directories():
            directory.notice_room()
        if not all(directory.is_full for directory in self._logs.online_directories()):
            await self._on_space()

    async def give_back_idle_room(self) -> None:
        """Truncate the preallocated tail of log files without recent writes, for tools that read them."""
        async for logs in self._some_logs():
            for log in filter(self._serves, logs):
                try:
                    log.give_back_when_idle()
                except StorageError as error:
                    self._failed(log, error)

    async def shrink_isrs(self) -> None:
        """Have followers removed from the ISR that do not keep up."""
        self._replicas.shrink_isrs(self._clock.now_ms())

    async def remove_garbage(self) -> None:
        """Remove files that were marked for deletion long enough ago."""
        now_ms = self._clock.now_ms()
        due = self._logs.due_directories(now_ms)
        async for logs in self._some_logs():
            for log in logs:
                due += log.due_garbage(now_ms)
        if due:
            await self._in_pool(lambda: self._logs.remove_garbage(due))

    async def _in_pool(self, step: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._pool, step)
