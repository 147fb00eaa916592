# cython: annotation_typing=False
"""Batches per partition: records that were not acknowledged yet. No I/O; the time is an argument.

Compiled by Cython (accumulator.pxd has the C types), or interpreted as is.

    send()  ->  queue.open   --full, lingered, flushed-->   queue.closed   --drained-->   the sender
                                                            (listed in `ready`)

Shared by threads that send and by the sender, under one lock that is held for a few instructions each time.
Memory is reserved for a whole batch when it is opened, what it did not use is given back when it is closed,
and the rest when it is complete.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import cython

from odradek.client.producer.batches.batch import (
    DeliveryFuture,
    Headers,
    ProducerBatch,
    RecordMetadata,
    new_future,
    smallest_batch_size,
)

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import wall_clock_ms
    from cython.cimports.odradek.records.kernels.hashes import murmur2
else:
    from odradek.common.c_clocks import wall_clock_ms
    from odradek.records.kernels.hashes import murmur2

OnDelivery = Callable[[BaseException | None, RecordMetadata], object]

MANY_CLOSED_BATCHES = 4
"""Larger batches are opened when so many closed batches of a partition wait."""
ENLARGED_BATCH_FACTOR = 8
"""How many times larger than `batch_size` such a batch may be."""
MIN_ENLARGED_BATCHES = 64
"""So many of them must fit the buffer memory."""
CHOOSE = -1
"""Instead of a partition: the partitioner's choice."""


def _nothing() -> None:
    """The default callback."""


class PartitionQueue:
    """The batches of one partition that no broker has: one open, any number closed, oldest first.

    `order` is for the sender, which keeps there what it must know to send them in order.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.open: ProducerBatch | None = None
        self.closed: deque[ProducerBatch] = deque()
        self.is_listed = False
        self.order: Any = None


class TopicQueues:
    """The partitions of one topic, and the sticky partition of records without a key."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queues: list[PartitionQueue] = []
        self.available: list[int] = []
        self.sticky = CHOOSE
        self.sticky_bytes = 0

    def resize(self, partitions: int, available: Sequence[int]) -> None:
        """Set the number of partitions and those with a leader. A topic created again may have fewer."""
        for partition in range(len(self.queues), partitions):
            self.queues.append(PartitionQueue(self.name, partition))
        self.available = list(available)
        if self.sticky not in available:
            self.sticky = CHOOSE


class Accumulator:
    """Filled by producers' threads, emptied by the sender."""

    def __init__(
        self,
        *,
        batch_size: int,
        buffer_memory: int,
        max_request_size: int,
        randrange: Callable[[int], int],
        now_ms: Callable[[], float],
    ) -> None:
        self.topics: dict[str, TopicQueues] = {}
        self.lock = threading.Lock()
        self.ready: deque[PartitionQueue] = deque()
        self.lingering: deque[tuple[float, PartitionQueue, ProducerBatch]] = deque()
        self.incomplete: dict[ProducerBatch, None] = {}
        self.batch_size = min(batch_size, max_request_size)
        # A batch that waits for others can be larger without a delay, and a request with more records costs
        # the same. It may use only a small part of the memory.
        self.enlarged_batch_size = min(
            self.batch_size * ENLARGED_BATCH_FACTOR,
            max_request_size,
            max(self.batch_size, buffer_memory // MIN_ENLARGED_BATCHES),
        )
        self.memory = self.memory_left = buffer_memory
        self.max_record_bytes = min(max_request_size, buffer_memory)
        self.problem: BaseException | None = None
        self.refusal: BaseException | None = None
        """Why records are not accepted at present, between the transactions of a producer."""
        self.blocked = 0
        self.records = 0
        self.is_sender_asleep = False
        # For threads that send a new batch directly after its first record.
        self.defers_waking = False
        self.is_wake_due = False
        self.hashes_keys = True
        self.wake: Callable[[], object] = _nothing
        self.on_memory: Callable[[], object] = _nothing
        self._randrange = randrange
        self._now_ms = now_ms
        self._memory_waiters = threading.Condition(self.lock)

    # Threads that send.

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: Headers | None,
        timestamp: int | None,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        """Append a record in the usual case; None if the caller must check it, wait, or raise."""
        queues = self.topics.get(topic)
        if (
            queues is None
            or self.problem is not None
            or self.refusal is not None
            or (value is not None and type(value) is not bytes)
            or (key is not None and type(key) is not bytes)
            or (partition is not None and type(partition) is not int)
            or (timestamp is not None and type(timestamp) is not int)
        ):
            return None
        chosen = CHOOSE if partition is None else partition
        timestamp_ms = wall_clock_ms() if timestamp is None else timestamp
        if (partition is not None and chosen < 0) or timestamp_ms < 0:
            return None
        if cython.compiled and headers is None:
            future = self._append_at_once(queues, chosen, key, value, timestamp_ms, on_delivery)
            if future is not None:
                return future
        return self.append(queues, chosen, key, value, headers, timestamp_ms, on_delivery)

    def _append_at_once(
        self,
        topic: TopicQueues,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        """Append a record that fits the open batch, without the lock; None if there is more to do.

        Only when compiled: from looking at `queue.open` to the last byte no Python code runs and nothing is
        made that the garbage collector knows, so that the interpreter lock is held all the time. A thread
        that closes a batch removes it from `queue.open` first, in one step.
        """
        if partition < 0:
            if key is not None and self.hashes_keys and topic.queues:
                partition = (murmur2(key) & 0x7FFFFFFF) % len(topic.queues)
            else:
                partition = topic.sticky
        if not 0 <= partition < len(topic.queues):
            return None
        fresh = new_future()
        queue: PartitionQueue = topic.queues[partition]
        batch = queue.open
        if batch is None:
            return None
        future = batch.append_with_future(fresh, key, value, None, timestamp_ms, on_delivery)
        if future is not None:
            self.records += 1
        return future

    def append(
        self,
        topic: TopicQueues,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp_ms: int,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        """Append a record to a partition, or to the one chosen here; None if memory is full."""
        self.lock.acquire()
        try:
            return self._append(topic, partition, key, value, headers, timestamp_ms, on_delivery)
        finally:
            self.lock.release()

    def _append(
        self,
        topic: TopicQueues,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp_ms: int,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture | None:
        chooses = partition < 0
        is_sticky = chooses and (key is None or not self.hashes_keys)
        if self.problem is not None or self.refusal is not None:
            return None
        if partition >= len(topic.queues) or not topic.queues:
            return None
        while True:
            if chooses:
                partition = self._choose(topic, key)
            queue: PartitionQueue = topic.queues[partition]
            batch = queue.open
            if batch is not None:
                future = batch.append(key, value, headers, timestamp_ms, on_delivery)
                if future is not None:
                    self.records += 1
                    return future
                self._close(queue)
            elif not is_sticky or topic.sticky_bytes < self.batch_size:
                break
            if not is_sticky:
                break
            # A partition gets a full batch before another one is chosen (KIP-794).
            self._switch(topic)
        batch = self._open(queue, key, value, headers)
        if batch is None:
            return None
        self.records += 1
        return batch.append(key, value, headers, timestamp_ms, on_delivery)

    def _choose(self, topic: TopicQueues, key: bytes | None) -> int:
        if key is not None and self.hashes_keys:
            digest: int = murmur2(key)
            return (digest & 0x7FFFFFFF) % len(topic.queues)
        if topic.sticky < 0:
            self._switch(topic)
        return topic.sticky

    def _switch(self, topic: TopicQueues) -> None:
        """Choose another sticky partition: of two at random, the one that has less to send."""
        choices: list[int] = topic.available or list(range(len(topic.queues)))
        one = choices[self._randrange(len(choices))]
        other = choices[self._randrange(len(choices))]
        fewer = len(topic.queues[other].closed) < len(topic.queues[one].closed)
        topic.sticky = other if fewer or one == topic.sticky else one
        topic.sticky_bytes = 0

    def _open(
        self, queue: PartitionQueue, key: bytes | None, value: bytes | None, headers: Headers | None
    ) -> ProducerBatch | None:
        least = smallest_batch_size(key, value, headers)
        capacity = max(
            self.enlarged_batch_size if len(queue.closed) >= MANY_CLOSED_BATCHES else self.batch_size, least
        )
        if capacity > self.memory_left:
            capacity = max(self.batch_size, least)
        if capacity > self.memory_left or capacity > self.max_record_bytes:
            return None
        self.memory_left -= capacity
        now_ms: float = self._now_ms()
        batch = ProducerBatch(queue.topic, queue.partition, capacity, now_ms)
        queue.open = batch
        self.incomplete[batch] = None
        self.lingering.append((now_ms, queue, batch))
        if self.is_sender_asleep and len(self.lingering) == 1:
            self.is_sender_asleep = False
            if self.defers_waking:
                self.is_wake_due = True
            else:
                self.wake()
        return batch

    def _close(self, queue: PartitionQueue) -> None:
        batch = queue.open
        assert batch is not None
        queue.open = None
        self.memory_left += batch.reserved - batch.size
        batch.reserved = batch.size
        topic: TopicQueues = self.topics[queue.topic]
        if queue.partition == topic.sticky:
            topic.sticky_bytes += batch.size
        queue.closed.append(batch)
        if not queue.is_listed:
            queue.is_listed = True
            self.ready.append(queue)
        if self.is_sender_asleep:
            self.is_sender_asleep = False
            self.wake()

    def switch(self, topic: TopicQueues) -> int:
        """A partition for a full batch without a key."""
        with self.lock:
            self._switch(topic)
            return topic.sticky

    def add_encoded(self, topic: TopicQueues, batch: ProducerBatch) -> bool:
        """Add an encoded batch; False if memory is full."""
        with self.lock:
            if batch.reserved > self.memory_left or self.problem is not None or self.refusal is not None:
                return False
            queue: PartitionQueue = topic.queues[batch.partition]
            if queue.open is not None:
                self._close(queue)
            self.memory_left -= batch.reserved
            self.incomplete[batch] = None
            self.records += batch.count
            queue.open = batch
            self._close(queue)
            return True

    def wait_for_memory(self, capacity: int, timeout_s: float) -> bool:
        """Block until `capacity` bytes are free or sending has failed; False after the time-out."""
        with self.lock:
            self.begin_to_wait()
            try:
                return self._memory_waiters.wait_for(
                    lambda: (
                        self.memory_left >= capacity or self.problem is not None or self.refusal is not None
                    ),
                    timeout_s,
                )
            finally:
                self.blocked -= 1

    def begin_to_wait(self) -> None:
        """A thread waits for memory: lingering batches are closed. Decrement `blocked` afterwards."""
        self.blocked += 1
        self._wake_sender()

    def fail_sends(self, problem: BaseException) -> None:
        """Every later send raises this."""
        with self.lock:
            self.problem = problem
            self._memory_waiters.notify_all()
            self.on_memory()

    def reject_records(self, refusal: BaseException) -> None:
        """Accept no records until `accept_records`: every send raises this."""
        with self.lock:
            self.refusal = refusal
            self._memory_waiters.notify_all()
            self.on_memory()

    def accept_records(self) -> None:
        """Accept records again."""
        with self.lock:
            self.refusal = None

    def take_unsent(self) -> list[ProducerBatch]:
        """Remove the batches that the sender has not taken, for a transaction that is aborted."""
        with self.lock:
            self._close_all()
            unsent: list[ProducerBatch] = []
            for topic in self.topics.values():
                for queue in topic.queues:
                    unsent += queue.closed
                    queue.closed.clear()
            return unsent

    def topic(self, name: str, partitions: int, available: Sequence[int]) -> TopicQueues:
        """The queues of a topic, which has so many partitions, of which these have a leader."""
        with self.lock:
            queues = self.topics.get(name)
            if queues is None:
                queues = self.topics[name] = TopicQueues(name)
            queues.resize(partitions, available)
            return queues

    def unfinished(self) -> list[ProducerBatch]:
        """Every batch that is not complete, and from now on none of them lingers."""
        with self.lock:
            self._close_all()
            return list(self.incomplete)

    def abandon(self, error: BaseException) -> None:
        """In a forked child: nothing is sent any more, and locks may be held by threads of the parent."""
        self.lock = threading.Lock()
        self._memory_waiters = threading.Condition(self.lock)
        self.problem = error
        for batch in list(self.incomplete):
            batch.abandon(error)
        self.incomplete.clear()

    # The sender.

    def close_lingered(self, linger_ms: float, now_ms: float) -> None:
        """Close the batches that have lingered long enough, or all if a thread waits for memory."""
        with self.lock:
            if self.blocked:
                self._close_all()
            while self.lingering:
                opened_ms, queue, batch = self.lingering[0]
                if queue.open is batch:
                    if opened_ms + linger_ms > now_ms:
                        return
                    self._close(queue)
                self.lingering.popleft()

    def pop_single(self, max_in_flight: int) -> PartitionQueue | None:
        """Close the only batch there is to send, for a thread that sends it at once; the sender is not woken.

        The queue is not listed; None if there is more to do, or nothing, or too many are in flight.
        """
        with self.lock:
            if self.ready or self.blocked or len(self.lingering) != 1:
                return None
            if len(self.incomplete) > 1 + max_in_flight:
                return None
            _, queue, batch = self.lingering[0]
            if queue.open is not batch or queue.closed:
                return None
            self.lingering.clear()
            self._close(queue)
            self.ready.clear()
            queue.is_listed = False
            self.is_sender_asleep = True
            return queue

    def prepare_to_wait(self, linger_ms: float) -> float | None:
        """Until when the sender may wait (infinity: until it is woken); None if it must continue."""
        with self.lock:
            self.is_sender_asleep = not self.ready
            if self.ready:
                return None
            return self.lingering[0][0] + linger_ms if self.lingering else math.inf

    def oldest(self) -> ProducerBatch | None:
        """The oldest incomplete batch."""
        with self.lock:
            return next(iter(self.incomplete), None)

    def take_ready(self) -> list[PartitionQueue]:
        """The queues with closed batches; each must be returned by `add_ready` if some are left."""
        with self.lock:
            listed = list(self.ready)
            self.ready.clear()
            for queue in listed:
                queue.is_listed = False
            return listed

    def add_ready(self, queue: PartitionQueue) -> None:
        """The queue still has closed batches, or has some again."""
        with self.lock:
            if not queue.is_listed:
                queue.is_listed = True
                self.ready.append(queue)

    def complete(
        self,
        batch: ProducerBatch,
        base_offset: int,
        log_append_time_ms: int = -1,
        error: BaseException | None = None,
    ) -> None:
        """Complete a batch and release its memory."""
        with self.lock:
            if batch in self.incomplete:
                del self.incomplete[batch]
                self.memory_left += batch.reserved
                # Waiting threads are woken when a quarter of the memory is free, not for each batch.
                if self.blocked and (self.memory_left * 4 >= self.memory or not self.incomplete):
                    self._memory_waiters.notify_all()
                    self.on_memory()
        batch.complete(base_offset, log_append_time_ms, error)

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """Replace a batch that was split by its parts, which are as old as it is."""
        with self.lock:
            if batch in self.incomplete:
                aged = list(self.incomplete)
                place = aged.index(batch)
                aged[place : place + 1] = parts
                self.incomplete = dict.fromkeys(aged)

    def fail_all(self, error: BaseException) -> None:
        """Fail all incomplete batches."""
        with self.lock:
            self._close_all()
            left = list(self.incomplete)
            for topic in self.topics.values():
                for queue in topic.queues:
                    queue.closed.clear()
        for batch in left:
            self.complete(batch, -1, -1, error)

    def _close_all(self) -> None:
        for _, queue, batch in self.lingering:
            if queue.open is batch:
                self._close(queue)
        self.lingering.clear()

    def _wake_sender(self) -> None:
        if self.is_sender_asleep:
            self.is_sender_asleep = False
            self.wake()
