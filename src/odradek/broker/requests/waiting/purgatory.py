# cython: annotation_typing=False
"""Requests that must wait: a produce until it is committed (acks=all), a fetch until there is enough to read.

Both are woken once per iteration of the loop, so that a produce that completes a hundred fetches responds to
its own client first. Compiled by Cython (purgatory.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from functools import partial
from typing import Any

from odradek.broker.requests.waiting.timeouts import Timeout, Timeouts
from odradek.common.error_codes import ErrorCode
from odradek.net.connection import Connection
from odradek.replication.partition import Partition

log = logging.getLogger(__name__)

_NONE = ErrorCode.NONE
_TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
_NOT_ENOUGH_REPLICAS = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class Waiter(Timeout):
    """One parked request; a subclass decides how it completes. Owned by its purgatory while it waits.

    It stops waiting when the `connection` of its client closes.
    """

    __slots__ = ("connection", "keys")

    connection: Connection | None
    keys: tuple[Hashable, ...]

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection
        self.keys = ()

    def try_complete(self) -> bool:
        """One of its keys changed: respond and return True, or return False to keep waiting."""
        raise NotImplementedError

    def on_timeout(self) -> None:
        """Respond with the data available."""
        raise NotImplementedError


class Purgatory:
    """The waiting fetches, by the partitions that they read. Owned by the broker, on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.watching: dict[Hashable, dict[Waiter, None]] = {}
        self._woken: set[Hashable] = set()
        self._timeouts = Timeouts(loop, self._expire)

    def __len__(self) -> int:
        return len(self._timeouts)

    def add(self, waiter: Waiter, keys: tuple[Hashable, ...], timeout_ms: int) -> None:
        """Add a waiter until one of these keys changes."""
        waiter.keys = keys
        connection = waiter.connection
        if connection is not None:
            connection.at_close[waiter] = partial(self.remove, waiter)
        watching = self.watching
        for key in keys:
            waiters = watching.get(key)
            if waiters is None:
                watching[key] = {waiter: None}
            else:
                waiters[waiter] = None
        self._timeouts.add(waiter, timeout_ms)

    def wake(self, key: Hashable) -> None:
        """Try the waiters of this key in the next iteration of the loop."""
        if key in self.watching:
            if not self._woken:
                self._loop.call_soon(self._run_woken)
            self._woken.add(key)

    def remove(self, waiter: Waiter) -> None:
        """Remove a waiter, for example because its client has disconnected."""
        self._timeouts.cancel(waiter)
        connection = waiter.connection
        if connection is not None:
            connection.at_close.pop(waiter, None)
        watching = self.watching
        for key in waiter.keys:
            waiters = watching.get(key)
            if waiters is not None:
                waiters.pop(waiter, None)
                if not waiters:
                    del watching[key]

    def _run_woken(self) -> None:
        woken, self._woken = self._woken, set()
        waiters: dict[Waiter, None] = {}
        for key in woken:
            waiters.update(self.watching.get(key, ()))
        for waiter in waiters:
            try:
                is_done = waiter.try_complete()
            except Exception:
                is_done = True
                _close(waiter.connection)
            if is_done:
                self.remove(waiter)

    def _expire(self, waiter: Waiter) -> None:
        self.remove(waiter)
        try:
            waiter.on_timeout()
        except Exception:
            _close(waiter.connection)


class CommitWait:
    """One appended batch that is to be committed, linked with its neighbours in the queue of its partition.

    `waiter`: what waits for it, None once it has its outcome. `row`: where the waiter reports that.
    """

    __slots__ = ("_next", "_previous", "last_offset", "led_since", "partition", "row", "waiter")

    def __init__(
        self, partition: Partition, last_offset: int, led_since: int, waiter: CommitWaiter, row: Any
    ) -> None:
        self.partition = partition
        self.last_offset = last_offset
        self.led_since = led_since
        self.waiter: CommitWaiter | None = waiter
        self.row = row
        self._previous: CommitWait | None = None
        self._next: CommitWait | None = None


class CommitWaiter(Timeout):
    """Waits until each of its batches is committed or has failed; a subclass decides what follows.

    `pending` counts the batches without an outcome.
    """

    __slots__ = ("connection", "pending", "waits")

    connection: Connection | None
    waits: list[CommitWait]
    pending: int

    def __init__(self, connection: Connection | None = None) -> None:
        self.connection = connection
        self.waits = []
        self.pending = 0

    def wait_for(self, partition: Partition, last_offset: int, led_since: int, row: Any = None) -> None:
        """Also wait for the batch that ends at `last_offset`, appended in the leadership since that epoch."""
        self.waits.append(CommitWait(partition, last_offset, led_since, self, row))

    def on_outcome(self, wait: CommitWait, error_code: ErrorCode) -> None:
        """A batch is committed, or will not be as far as this broker knows."""
        raise NotImplementedError

    def on_complete(self) -> None:
        """Every batch has its outcome."""
        raise NotImplementedError


class PartitionWaits:
    """Batches of one partition, appended in one leadership of this broker, in the order of their offsets.

    `woken_by`: the partition, as it is now, whose batches are to be looked at soon.
    """

    __slots__ = ("first", "last", "led_since", "partition", "woken_by")

    def __init__(self, partition: Partition, led_since: int) -> None:
        self.partition = partition
        self.led_since = led_since
        self.woken_by: Partition | None = None
        self.first: CommitWait | None = None
        self.last: CommitWait | None = None

    @property
    def waits(self) -> list[CommitWait]:
        """What is in the queue now, the smallest offset first."""
        found, wait = [], self.first
        while wait is not None:
            found.append(wait)
            wait = wait._next
        return found

    def add(self, wait: CommitWait) -> None:
        """Put a batch in its place: behind all others, unless it repeats one that was appended before."""
        previous, following = self.last, None
        while previous is not None and previous.last_offset > wait.last_offset:
            previous, following = previous._previous, previous
        wait._previous, wait._next = previous, following
        if previous is None:
            self.first = wait
        else:
            previous._next = wait
        if following is None:
            self.last = wait
        else:
            following._previous = wait

    def remove(self, wait: CommitWait) -> None:
        """Take a batch out, wherever it is."""
        previous, following = wait._previous, wait._next
        wait._previous = wait._next = None
        if previous is None:
            self.first = following
        else:
            previous._next = following
        if following is None:
            self.last = previous
        else:
            following._previous = previous


class CommitPurgatory:
    """Batches that wait for the high watermark (acks=all). Owned by the broker, on the loop.

    `until_flushed`: they wait for the recovery point instead (acks=1 where `flush.messages` is set).
    A wake-up takes them in the order of their offsets and stops at the first that is not committed.
    `watching`: the queues of the partitions with such batches, none of which is empty.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, until_flushed: bool = False) -> None:
        self._loop = loop
        self._until_flushed = until_flushed
        self.watching: dict[Hashable, PartitionWaits] = {}
        self._woken: list[PartitionWaits] = []
        self._timeouts = Timeouts(loop, self._expire)

    def __len__(self) -> int:
        return len(self._timeouts)

    def add(self, waiter: CommitWaiter, timeout_ms: int) -> None:
        """Park a waiter until all its batches have an outcome, or the time is over."""
        waiter.pending = len(waiter.waits)
        self._timeouts.add(waiter, timeout_ms)
        for wait in waiter.waits:
            self._watch(wait)

    def _watch(self, wait: CommitWait) -> None:
        partition = wait.partition
        key = partition.topic_partition
        queue = self.watching.get(key)
        if queue is not None and (queue.led_since != wait.led_since or queue.partition is not partition):
            self._fail(key, queue)
            queue = None
        if queue is None:
            queue = self.watching[key] = PartitionWaits(partition, wait.led_since)
        queue.add(wait)

    def wake(self, partition: Partition) -> None:
        """The partition's high watermark or leadership may have changed: look at its batches soon."""
        queue = self.watching.get(partition.topic_partition)
        if queue is None:
            return
        if queue.woken_by is None:
            if not self._woken:
                self._loop.call_soon(self.run_woken)
            self._woken.append(queue)
        queue.woken_by = partition

    def run_woken(self) -> None:
        """Complete what can be completed in the partitions that were woken."""
        woken, self._woken = self._woken, []
        for queue in woken:
            partition, queue.woken_by = queue.woken_by, None
            # All of its batches may have an outcome by now, and another queue may have replaced it.
            if queue.first is not None:
                assert partition is not None
                self._complete_committed(queue, partition)

    def _complete_committed(self, queue: PartitionWaits, partition: Partition) -> None:
        key = partition.topic_partition
        if (
            queue.partition is not partition
            or not partition.is_leader
            or partition.led_since != queue.led_since
        ):
            self._fail(key, queue)
            return
        error_code = _NONE
        if self._until_flushed:
            end_offset = partition.log.recovery_point
        else:
            end_offset = partition.log.high_watermark
            if not partition.has_enough_in_sync():
                error_code = _NOT_ENOUGH_REPLICAS
        wait = queue.first
        while wait is not None and wait.last_offset < end_offset:
            queue.remove(wait)
            self._settle(wait, error_code)
            wait = queue.first
        self._drop_if_empty(key, queue)

    def _drop_if_empty(self, key: Hashable, queue: PartitionWaits) -> None:
        if queue.first is None and self.watching.get(key) is queue:
            del self.watching[key]

    def _fail(self, key: Hashable, queue: PartitionWaits) -> None:
        """This broker did not lead all the time since: the batches may or may not be kept."""
        self.watching.pop(key, None)
        wait = queue.first
        while wait is not None:
            queue.remove(wait)
            self._settle(wait, _NOT_LEADER)
            wait = queue.first

    def _settle(self, wait: CommitWait, error_code: ErrorCode) -> None:
        """A batch that is in no queue any more has its outcome."""
        waiter = wait.waiter
        if waiter is None:
            return
        # Else both would keep each other in memory.
        wait.waiter = None
        waiter.pending -= 1
        try:
            waiter.on_outcome(wait, error_code)
            if waiter.pending == 0:
                self._timeouts.cancel(waiter)
                waiter.on_complete()
        except Exception:
            _close(waiter.connection)

    def _expire(self, waiter: CommitWaiter) -> None:
        for wait in waiter.waits:
            if wait.waiter is None:
                continue
            key = wait.partition.topic_partition
            queue = self.watching[key]
            queue.remove(wait)
            self._drop_if_empty(key, queue)
            self._settle(wait, _NONE if self._is_done(wait) else _TIMED_OUT)

    def _is_done(self, wait: CommitWait) -> bool:
        if self._until_flushed:
            return wait.partition.is_flushed(wait.last_offset)
        return wait.partition.is_committed(wait.last_offset)


def _close(connection: Connection | None) -> None:
    """A waiting request failed unexpectedly: its connection is closed, so that its client does not wait."""
    log.exception(
        "Unexpected error in a waiting request, requested by %s",
        connection.peer if connection else "this broker",
    )
    if connection is not None:
        connection.close("unexpected broker error")
