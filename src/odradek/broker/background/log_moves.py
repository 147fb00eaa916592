"""Moves replicas from one log directory of this broker to another: copy, swap, cancel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.broker.background.log_cleaning import LogCleaning
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError, OdradekError
from odradek.common.ids import TopicPartition
from odradek.log.directories.log_directory import LogDirectory
from odradek.log.directories.log_move import LogMove
from odradek.log.errors import StorageError
from odradek.log.filenames import MAX_FILENAME_LENGTH
from odradek.replication.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

InPool = Callable[[Callable[[], Any]], Awaitable[Any]]

FUTURE_SUFFIX_LENGTH = len(".") + 32 + len("-future")
UNLIMITED = 2**63 - 1


class _RunningMove:
    """One move, and whether it was cancelled."""

    __slots__ = ("ended", "gives_up", "move", "task")

    def __init__(self, move: LogMove) -> None:
        self.move = move
        self.ended = asyncio.Event()
        self.gives_up = False
        self.task: asyncio.Task[None] | None = None


class LogMoves:
    """The moves of this broker. Owned by the server, on the loop; what blocks runs by `in_pool`.

    `max_bytes_per_second` is read after each chunk, so that it can change during a copy.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        cleaning: LogCleaning,
        clock: Clock,
        in_pool: InPool,
        *,
        max_parallel: int,
        max_bytes_per_second: Callable[[], int] = lambda: UNLIMITED,
    ) -> None:
        self._replicas = replicas
        self._logs = replicas.logs
        self._cleaning = cleaning
        self._clock = clock
        self._in_pool = in_pool
        self._max_bytes_per_second = max_bytes_per_second
        self._slots = asyncio.Semaphore(max_parallel)
        self._ordering = asyncio.Lock()
        self._rides: dict[TopicPartition, _RunningMove] = {}

    async def start(self) -> None:
        """Resume the moves that the last stop interrupted."""
        for topic_partition, directory in self._logs.report.unfinished_moves.items():
            if self._replicas.find(*topic_partition) is not None and directory.failure is None:
                await self._begin(topic_partition, directory)

    async def stop(self) -> None:
        """Interrupt all moves; the next start resumes them."""
        rides = list(self._rides.values())
        for ride in rides:
            ride.ended.set()
        await asyncio.gather(*(ride.task for ride in rides if ride.task is not None))

    async def order(self, topic_partition: TopicPartition, path: str) -> None:
        """Start moving a replica to a directory, unless it is there; raises KafkaError if it cannot.

        A replica that does not exist yet is created there later.
        """
        if len(str(topic_partition)) + FUTURE_SUFFIX_LENGTH > MAX_FILENAME_LENGTH:
            raise KafkaError("The topic name is too long.", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)
        directory = self._directory(path)
        async with self._ordering:
            if self._replicas.find(*topic_partition) is None:
                self._logs.prefer(topic_partition, directory)
                raise KafkaError(f"{topic_partition} is not here", error_code=ErrorCode.REPLICA_NOT_AVAILABLE)
            move = self._logs.moves.get(topic_partition)
            if move is not None and move.directory is directory:
                return
            await self.cancel(topic_partition)
            if self._logs.directory_of(topic_partition) is not directory:
                await self._begin(topic_partition, directory)

    async def cancel(self, topic_partition: TopicPartition) -> None:
        """Cancel the move of a replica, if there is one; returns when it has stopped."""
        ride = self._rides.get(topic_partition)
        if ride is not None and ride.task is not None:
            ride.gives_up = True
            ride.ended.set()
            await ride.task

    def _directory(self, path: str) -> LogDirectory:
        for directory in self._logs.directories:
            if directory.path == path:
                if directory.failure is None:
                    return directory
                raise KafkaError(f"{path} is offline", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        raise KafkaError(f"{path} is not in log.dirs", error_code=ErrorCode.LOG_DIR_NOT_FOUND)

    async def _begin(self, topic_partition: TopicPartition, directory: LogDirectory) -> None:
        """Create the directory of the copy: from here on the move is resumed after a crash."""
        move = self._logs.begin_move(topic_partition, directory)
        self._cleaning.pause(topic_partition)
        try:
            await self._in_pool(lambda: move.prepare(self._clock.now_ms()))
        except (OSError, KafkaError) as error:
            await self._fail(move, error)
            raise StorageError(OSError(str(error)), move.path) from error
        ride = self._rides[topic_partition] = _RunningMove(move)
        ride.task = asyncio.create_task(self._carry(ride))

    async def _carry(self, ride: _RunningMove) -> None:
        """Run one move; if it fails, it is cancelled and the replica stays where it is."""
        move = ride.move
        try:
            if await self._copy(ride):
                await self._complete(move)
            elif ride.gives_up:
                await self._give_up(move)
            else:
                self._logs.interrupt_move(move)
        except (OSError, OdradekError) as error:
            await self._fail(move, error)
        except Exception:
            logger.exception("Unexpected error in the move of %s", move.source.partition)
            await self._give_up(move)
        finally:
            del self._rides[move.source.partition]

    async def _copy(self, ride: _RunningMove) -> bool:
        """Copy until nothing is left; False if the move must not continue."""
        move = ride.move
        while not ride.ended.is_set():
            if self._logs.get(move.source.partition) is not move.source:
                ride.gives_up = True
                return False
            async with self._slots:
                copied = await self._in_pool(lambda: move.copy_some(self._clock.now_ms()))
                if not copied:
                    await self._in_pool(lambda: move.settle(self._clock.now_ms()))
            if copied:
                await self._pace(ride, copied)
            elif self._is_ready(ride):
                return True
        return False

    def _is_ready(self, ride: _RunningMove) -> bool:
        move = ride.move
        is_wanted = self._logs.get(move.source.partition) is move.source and not ride.ended.is_set()
        return is_wanted and move.is_ready_after_rest(self._clock.now_ms())

    async def _pace(self, ride: _RunningMove, copied_bytes: int) -> None:
        rate = self._max_bytes_per_second()
        if rate < UNLIMITED:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(ride.ended.wait(), copied_bytes / max(rate, 1))

    async def _complete(self, move: LogMove) -> None:
        source, topic_partition = move.source, move.source.partition
        give_up_old = self._logs.complete_move(move, now_ms=self._clock.now_ms())
        copy = self._logs.logs[topic_partition]
        self._replicas.replace_log(topic_partition, copy)
        self._cleaning.resume(topic_partition)
        note_cleaned = self._cleaning.moved(source, copy)
        # The old one stays until the new one is as safe as that was.
        flush = copy.begin_flush(self._clock.now_ms())
        for step in (flush.run, *(job.run for job in self._logs.checkpoints()), note_cleaned, give_up_old):
            await self._in_pool(step)
        copy.complete_flush(flush)
        source.release()
        logger.info("%s has moved to %s", topic_partition, move.directory.path)

    async def _fail(self, move: LogMove, error: Exception) -> None:
        logger.error("Moving %s failed, it stays in its directory: %s", move.source.partition, error)
        if isinstance(error, OSError):
            error = StorageError(error, move.path)
        if isinstance(error, StorageError):
            is_of_source = error.path == move.source.directory.path
            directory = self._logs.directory_of(move.source.partition) if is_of_source else move.directory
            if directory is not None:
                self._replicas.directory_failed(directory, error)
        await self._give_up(move)

    async def _give_up(self, move: LogMove) -> None:
        if self._logs.moves.get(move.source.partition) is not move:
            return  # it failed when the copy served already
        self._cleaning.resume(move.source.partition)
        step = self._logs.cancel_move(move, now_ms=self._clock.now_ms())
        try:
            await self._in_pool(step)
        except StorageError as error:
            self._replicas.directory_failed(move.directory, error)
