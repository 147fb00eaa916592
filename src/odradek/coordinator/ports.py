"""What a coordinator needs from the broker; implemented by `broker/coordinators/adapters.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol


class PartitionWriter(Protocol):
    """One internal topic on this broker: its partitions by number."""

    def append(self, partition: int, leader_epoch: int, batch: bytearray, now_ms: int) -> int:
        """Write a batch as the leader of that epoch; the offset of its last record. KafkaError if not."""
        ...

    def is_committed(self, partition: int, offset: int) -> bool:
        """Whether every replica in sync has that offset."""
        ...

    async def wait_committed(self, partition: int, offset: int, timeout_ms: int) -> None:
        """Return when that offset is committed; KafkaError if leadership or the time is over."""
        ...

    def end_offset(self, partition: int) -> int:
        """Where the next record goes."""
        ...

    def read(self, partition: int, end_offset: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log up to an offset, in pieces; KafkaError if it cannot."""
        ...


class RunningTimer(Protocol):
    """A timer that has not rung yet."""

    def cancel(self) -> None:
        """Never ring."""
        ...


class Timer(Protocol):
    """The passing of time."""

    def call_later(self, delay_ms: int, ring: Callable[[], None]) -> RunningTimer:
        """Call `ring` once, so long from now."""
        ...
