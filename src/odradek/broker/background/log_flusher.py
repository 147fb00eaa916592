"""Flushes logs in the pool: before a response where `flush.messages` requires it, and periodically."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor

from odradek.common.clock import Clock
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import ReplicaManager


class LogFlusher:
    """Runs at most one flush per log at a time. Owned by the broker, on the loop.

    Everything that was appended before a flush begins is covered by it, so that producers share one fsync.
    """

    def __init__(self, replicas: ReplicaManager, clock: Clock, pool: Executor) -> None:
        self._replicas = replicas
        self._clock = clock
        self._pool = pool
        self._running: dict[PartitionLog, asyncio.Task[None]] = {}

    def flush_soon(self, partition: Partition) -> None:
        """Begin to flush the log of a partition whose last append waits for it."""
        is_served = self._replicas.partitions.get(partition.topic_partition) is partition
        if is_served and partition.log not in self._running:
            self._start(partition.log)

    async def flush(self, log: PartitionLog) -> None:
        """Flush a log, or wait for the flush that is running; a failed disk goes offline."""
        await asyncio.shield(self._running.get(log) or self._start(log))

    async def stop(self) -> None:
        """Wait for what is running."""
        await asyncio.gather(*self._running.values())

    def _start(self, log: PartitionLog) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._flush(log))
        self._running[log] = task
        return task

    async def _flush(self, log: PartitionLog) -> None:
        try:
            job = log.begin_flush(self._clock.now_ms())
            await asyncio.get_running_loop().run_in_executor(self._pool, job.run)
        except StorageError as error:
            if self._replicas.logs.get(log.partition) is log:  # else its files went while they were synced
                self._replicas.disk_failed(log.partition, error)
            return
        finally:
            del self._running[log]
        log.complete_flush(job)
        partition = self._replicas.partitions.get(log.partition)
        if partition is not None and partition.log is log:
            partition.on_flushed()
