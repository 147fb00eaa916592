"""A log in memory, timers and a clock for the coordinator runtime."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from odradek.common.errors import KafkaError
from odradek.records.batch import iterate_headers


class MemoryLog:
    """A partition whose commits are made by hand, and whose writes can fail."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.next_offset = 0
        self.committed = 1 << 60
        self.fault: KafkaError | None = None
        self.moved = asyncio.Event()

    def append(
        self,
        partition: int,
        leader_epoch: int,
        batch: bytearray,
        now_ms: int,
        transaction_version: int = 0,
    ) -> int:
        if self.fault is not None:
            raise self.fault
        self.batches.append(bytes(batch))
        self.next_offset += sum(header.record_count for _, header in iterate_headers(batch))
        return self.next_offset - 1

    def is_committed(self, partition: int, offset: int) -> bool:
        return offset < self.committed

    async def wait_committed(self, partition: int, offset: int, timeout_ms: int) -> None:
        while not self.is_committed(partition, offset):
            self.moved.clear()
            await self.moved.wait()
            if self.fault is not None:
                raise self.fault

    def commit(self) -> None:
        self.committed = self.next_offset
        self.moved.set()

    def end_offset(self, partition: int) -> int:
        return self.next_offset

    async def read(self, partition: int, end_offset: int) -> AsyncIterator[bytes]:
        for batch in self.batches:
            await asyncio.sleep(0)
            yield batch


class Alarm:
    def __init__(self, callback: Callable[[], None], delay_ms: int) -> None:
        self.fire = callback
        self.delay_ms = delay_ms
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Alarms:
    """Timers that fire when the test says so."""

    def __init__(self) -> None:
        self.set: list[Alarm] = []

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Alarm:
        self.set.append(Alarm(callback, delay_ms))
        return self.set[-1]

    def fire(self) -> None:
        due, self.set = [alarm for alarm in self.set if not alarm.is_cancelled], []
        for alarm in due:
            alarm.fire()


class FixedClock:
    def now_ms(self) -> int:
        return 1_000
