"""Waits, in a coroutine, until an appended batch is committed."""

from __future__ import annotations

import asyncio

from odradek.broker.requests.waiting.purgatory import CommitPurgatory, CommitWait, CommitWaiter
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import Partition


async def wait_committed(waiting: CommitPurgatory, led: Partition, offset: int, timeout_ms: int) -> None:
    """Return when that offset is committed; KafkaError if leadership is lost, or on timeout."""
    waiter = _Committed(asyncio.get_running_loop().create_future())
    waiter.wait_for(led, offset, led.led_since)
    waiting.add(waiter, timeout_ms)
    # It may have been committed before anybody waited.
    waiting.wake(led)
    error_code = await waiter.done
    if error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        raise NotLeaderOrFollower(led.topic_partition, led.state.leader_id, led.state.leader_epoch)
    if error_code is not ErrorCode.NONE:
        raise KafkaError("not committed", error_code=error_code)


class _Committed(CommitWaiter):
    """Completes a future with the outcome of one batch."""

    __slots__ = ("done",)

    def __init__(self, done: asyncio.Future[ErrorCode]) -> None:
        super().__init__()
        self.done = done

    def on_outcome(self, wait: CommitWait, error_code: ErrorCode) -> None:
        """Committed, or the leader epoch or the time is over."""
        if not self.done.done():
            self.done.set_result(error_code)

    def on_complete(self) -> None:
        """There is only one batch."""
