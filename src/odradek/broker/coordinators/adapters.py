"""Fills the coordinators' ports with replication: an internal topic to write to, timers on the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

from odradek.broker.requests.waiting.commit_wait import wait_committed
from odradek.broker.requests.waiting.purgatory import CommitPurgatory
from odradek.coordinator.ports import RunningTimer
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.reading import Isolation
from odradek.records.batch import iterate_headers
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import ALL_IN_SYNC, Partition
from odradek.replication.replica_manager import ReplicaManager

LOAD_BYTES = 5_242_880


class InternalTopic:
    """The partitions of one internal topic that have a replica here. Lives on the broker's loop."""

    def __init__(
        self,
        topic: str,
        replicas: ReplicaManager,
        waiting: CommitPurgatory,
        pool: Executor,
        *,
        load_bytes: int = LOAD_BYTES,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._waiting = waiting
        self._pool = pool
        self._load_bytes = load_bytes

    def append(
        self,
        partition: int,
        leader_epoch: int,
        batch: bytearray,
        now_ms: int,
        transaction_version: int = 0,
    ) -> int:
        """Write a batch as the leader of that epoch; the offset of its last record."""
        led = self._led(partition)
        if led.state.leader_epoch != leader_epoch:
            raise NotLeaderOrFollower(led.topic_partition, led.state.leader_id, led.state.leader_epoch)
        info = led.append(batch, ALL_IN_SYNC, now_ms, Origin.COORDINATOR, transaction_version)
        return info.last_offset

    def is_committed(self, partition: int, offset: int) -> bool:
        """Whether every replica in sync has that offset."""
        found = self._replicas.find(self.topic, partition)
        return found is not None and found.is_committed(offset)

    async def wait_committed(self, partition: int, offset: int, timeout_ms: int) -> None:
        """Return when that offset is committed."""
        led = self._led(partition)
        await wait_committed(self._waiting, led, offset, timeout_ms)

    def end_offset(self, partition: int) -> int:
        """The offset of the next record."""
        return self._replicas.get(self.topic, partition).log.log_end_offset

    async def read(self, partition: int, end_offset: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log up to an offset, in pieces."""
        loop = asyncio.get_running_loop()
        led = self._led(partition)
        offset = led.log.log_start_offset
        while offset < end_offset:
            read = partial(led.log.read, offset, self._load_bytes, isolation=Isolation.LOG_END)
            data = await loop.run_in_executor(self._pool, read)
            if data.range is None:
                return
            piece = await loop.run_in_executor(self._pool, data.range.read)
            yield piece
            for _, header in iterate_headers(piece):
                offset = header.next_offset

    def _led(self, partition: int) -> Partition:
        found = self._replicas.get(self.topic, partition)
        found.require_leader()
        return found


class LoopTimer:
    """Time as the event loop has it."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> RunningTimer:
        """Call `callback` once after `delay_ms`."""
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback)


def follow_leadership(
    runtime: CoordinatorRuntime[Any], replicas: ReplicaManager, *, keeps_state: bool
) -> Callable[[Partition], None]:
    """Notifies a coordinator when this broker becomes or stops being leader of a partition of its topic.

    `keeps_state`: whether the state stays when the same leader continues in a new leader epoch, as after the
    death of a follower; else it is loaded again.
    """

    def changed(partition: Partition) -> None:
        index = partition.topic_partition.partition
        is_here = replicas.find(*partition.topic_partition) is partition
        if is_here and partition.is_leader:
            led_since = partition.led_since if keeps_state else None
            runtime.lead(index, partition.state.leader_epoch, led_since)
        else:
            runtime.resign(index)

    return changed
