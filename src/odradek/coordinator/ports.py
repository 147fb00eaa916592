"""What a coordinator needs from the broker; implemented by `broker/coordinators/adapters.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol


class PartitionWriter(Protocol):
    """One internal topic on this broker: its partitions by number."""

    def append(
        self,
        partition: int,
        leader_epoch: int,
        batch: bytearray,
        now_ms: int,
        transaction_version: int = 0,
    ) -> int:
        """Append a batch as the leader of that epoch; the offset of its last record. KafkaError on error.

        `transaction_version` is that of a marker, which decides how its epoch is checked.
        """
        ...

    def is_committed(self, partition: int, offset: int) -> bool:
        """Whether every in-sync replica has that offset."""
        ...

    async def wait_committed(self, partition: int, offset: int, timeout_ms: int) -> None:
        """Wait until that offset is committed; KafkaError if leadership is lost, or on timeout."""
        ...

    def end_offset(self, partition: int) -> int:
        """The log end offset."""
        ...

    def read(self, partition: int, end_offset: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log up to an offset, in chunks; KafkaError on failure."""
        ...


class RunningTimer(Protocol):
    """A timer that has not fired yet."""

    def cancel(self) -> None:
        """Stop the timer."""
        ...


class Timer(Protocol):
    """Starts timers."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> RunningTimer:
        """Call `callback` once after `delay_ms`."""
        ...
