"""Compaction in a running broker: the cleaner's threads, restarted when their settings change."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from odradek.common.clock import Clock
from odradek.common.ids import TopicPartition
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.manager import CleanerManager, CleaningResult, Step
from odradek.log.cleaner.worker import CleanerWorker
from odradek.log.directories.log_manager import LogManager
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog

logger = logging.getLogger(__name__)

OnFailure = Callable[[TopicPartition, StorageError], object]


class LogCleaning:
    """The cleaner of this broker. Owned by the server, on the loop that owns the logs.

    `on_failure` is called when a disk failed during cleaning.
    """

    def __init__(self, logs: LogManager, config: CleanerConfig, clock: Clock, on_failure: OnFailure) -> None:
        self._logs = logs
        self._clock = clock
        self._on_failure = on_failure
        self._wakes_sleepers = threading.Event()
        self._wanted = config
        self.manager = self._make_manager(config)
        self._worker: CleanerWorker | None = None
        self._task: asyncio.Task[None] | None = None
        self._switching: asyncio.Task[None] | None = None

    def _make_manager(self, config: CleanerConfig) -> CleanerManager:
        self._wakes_sleepers = woken = threading.Event()
        # A thread that is slowed down to its byte rate may have to sleep for long, but not at the stop.
        return CleanerManager(config, self._logs.files, self._logs.logs, sleep=lambda s: _sleep(woken, s))

    def start(self) -> None:
        """Begin; call it on the running loop."""
        self._worker = CleanerWorker(self.manager, self._clock.now_ms, self._ended)
        self._task = asyncio.create_task(self._worker.run())
        self._task.add_done_callback(_log_failure)

    async def stop(self) -> None:
        """Cancel the current runs and stop the threads."""
        self._wanted = self.manager.config
        if self._switching is not None:
            await self._switching
        await self._end_threads()

    async def _end_threads(self) -> None:
        if self._worker is not None and self._task is not None:
            self._worker.stop()
            self._wakes_sleepers.set()
            await asyncio.gather(self._task, return_exceptions=True)
            self._worker = self._task = None

    def apply(self, config: CleanerConfig) -> None:
        """Restart the threads with other settings; the current runs are cancelled and repeated."""
        self._wanted = config
        if self._task is None:
            self.manager = self._make_manager(config)
        elif self._switching is None and config != self.manager.config:
            self._switching = asyncio.create_task(self._switch())
            self._switching.add_done_callback(_log_failure)

    async def _switch(self) -> None:
        while self._wanted != self.manager.config:
            await self._end_threads()
            before, self.manager = self.manager, self._make_manager(self._wanted)
            self.manager.inherit(before)
            self.start()
        self._switching = None

    def _ended(self, outcome: CleaningResult) -> None:
        if outcome.storage_error is not None:
            self._on_failure(outcome.partition, outcome.storage_error)

    # What happens to the logs

    def removed(self, log: PartitionLog) -> Step:
        """Called after a log was removed; returns the step that removes its checkpoint, which may block."""
        return self.manager.removed(log)

    def truncated(self, log: PartitionLog) -> Step:
        """Called after a log was truncated; returns the step that updates its checkpoint, which may block."""
        return self.manager.truncated(log)

    def moved(self, log: PartitionLog, copy: PartitionLog) -> Step:
        """Called after a log was replaced by its copy; returns the step that updates the checkpoints."""
        return self.manager.moved(log, copy)

    def pause(self, topic_partition: TopicPartition) -> None:
        """Do not clean a log until `resume`."""
        self.manager.pause(topic_partition)

    def resume(self, topic_partition: TopicPartition) -> None:
        """The log may be cleaned again."""
        self.manager.resume(topic_partition)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log the failure of the cleaner's task: nothing is compacted any more."""
    if not task.cancelled() and task.exception() is not None:
        logger.error("Unexpected error in the log cleaner; it has stopped", exc_info=task.exception())


def _sleep(woken: threading.Event, seconds: float) -> None:
    woken.wait(seconds)
