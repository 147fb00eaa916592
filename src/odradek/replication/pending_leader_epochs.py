"""The partitions whose new leader epoch is being written to the disk, and the requests that wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from odradek.common.ids import TopicPartition


class PendingLeaderEpochs:
    """Owned by the replica manager, on the loop.

    A client's request for such a partition is neither refused nor served: a refused batch would leave a gap
    in the sequences of its producer if the next one of the same connection was appended. `is_empty` is for
    handlers on the hot path.
    """

    __slots__ = ("_waiting", "is_empty")

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, list[asyncio.Future[None]]] = {}
        self.is_empty = True

    def __contains__(self, partition: object) -> bool:
        return partition in self._waiting

    def add(self, partition: TopicPartition) -> None:
        """A leader epoch of this partition is being written from now on."""
        self._waiting.setdefault(partition, [])
        self.is_empty = False

    def discard(self, partition: TopicPartition) -> None:
        """It is written, or cannot be: what waits for it is judged by the present state."""
        for future in self._waiting.pop(partition, ()):
            if not future.done():
                future.set_result(None)
        self.is_empty = not self._waiting

    async def wait_until_written(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until none of these partitions has a pending leader epoch."""
        for partition in partitions:
            while partition in self._waiting:
                future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._waiting[partition].append(future)
                await future
