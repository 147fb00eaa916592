# cython: annotation_typing=False
"""A batch of one partition, from its first record to its delivery, and the futures of its records.

Compiled by Cython (batch.pxd has the C types), or interpreted as is. A record is encoded into its batch
when it is sent, so that only its bytes are kept: a future is (batch, index), and its result is computed on
demand. The batch is completed once, for all its records.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import cython

from odradek.client.network.direct_read import DirectRead
from odradek.records.batch import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_FLAG,
    stamp_producer,
)
from odradek.records.builder import with_codec
from odradek.records.compression import Codec
from odradek.records.kernels.layout import HEADER_SIZE
from odradek.records.kernels.record_check import new_bytearray

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
    from cython.cimports.odradek.records.kernels.encoding import (
        size_of_body,
        size_of_varint,
        write_header,
        write_record,
    )
    from cython.cimports.odradek.records.kernels.record_check import wrapping_difference
else:
    from odradek.common.c_clocks import monotonic_seconds
    from odradek.records.kernels.encoding import put_record as write_record
    from odradek.records.kernels.encoding import size_of_body, size_of_varint, write_header
    from odradek.records.kernels.record_check import wrapping_difference

if TYPE_CHECKING:
    from collections.abc import Generator

Headers = Sequence[tuple[str, bytes | None]]

NO_OFFSET = -1

_log = logging.getLogger("odradek.producer")
# Held for a few instructions when a batch completes or a thread begins to wait for it; never while
# records are appended.

_ending = threading.Lock()


class RecordMetadata:
    """Where a record is now: `offset` is -1 where it is not known (acks=0, or it failed)."""

    def __init__(self, topic: str, partition: int, offset: int, timestamp: int) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp

    def __repr__(self) -> str:
        place = f"topic={self.topic!r}, partition={self.partition}, offset={self.offset}"
        return f"RecordMetadata({place}, timestamp={self.timestamp})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordMetadata):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordMetadata, self._fields()

    def _fields(self) -> tuple[str, int, int, int]:
        return self.topic, self.partition, self.offset, self.timestamp


@cython.no_gc
@cython.cclass
class DeliveryFuture:
    """The result of sending one record. Thread-safe; it can also be awaited."""

    def __init__(self, batch: ProducerBatch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    def __repr__(self) -> str:
        part = self._part()
        if not part._batch.is_done:
            status = "not delivered yet"
        else:
            status = "delivered" if part._batch.error is None else f"failed with {part._batch.error!r}"
        return f"<DeliveryFuture of a record for {part._batch.topic}-{part._batch.partition}: {status}>"

    def done(self) -> bool:
        """Whether the record was delivered, or never will be."""
        batch = self._part()._batch
        if not batch.is_done:
            batch.read_available()
        return batch.is_done

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Wait until the record is delivered; raises if it cannot be, or after `timeout` seconds."""
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(None)
        return self._part().metadata()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait like `result`; the error if the record cannot be delivered, else None."""
        part = self._part()
        if part._batch.is_done:
            return part._batch.error_of(part._index)
        deadline = None if timeout is None else monotonic_seconds() + timeout
        part._batch.wait(timeout)
        part = part._part()
        while not part._batch.is_done:  # it was split
            part._batch.wait(None if deadline is None else deadline - monotonic_seconds())
            part = part._part()
        return part._batch.error_of(part._index)

    def add_done_callback(self, callback: Callable[[DeliveryFuture], object]) -> None:
        """Call `callback(future)` once it is done: at once if it is, else from the producer's thread."""
        part = self._part()
        while not part._batch.add_done_callback(self, callback):
            if part._batch.is_done:
                callback(self)
                break
            part = part._part()

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if not self.done():
            yield from self._wait_on_loop().__await__()
        return self.result(0)

    async def _wait_on_loop(self) -> None:
        import asyncio  # noqa: PLC0415

        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self.add_done_callback(lambda _: loop.call_soon_threadsafe(wake))
        await woken

    def _part(self) -> DeliveryFuture:
        """The same record in the batch where it is now: another one where its batch was split."""
        part = self
        while part._batch.parts is not None:
            part = part._batch.moved(part._index, part._timestamp_ms)
        return part

    def metadata(self) -> RecordMetadata:
        """The result for a batch that is done and was not split."""
        batch = self._batch
        place = RecordMetadata.__new__(RecordMetadata)
        place.topic = batch.topic
        place.partition = batch.partition
        place.offset = batch.base_offset + self._index if batch.base_offset >= 0 else -1
        is_appended_at = batch.log_append_time_ms >= 0
        place.timestamp = batch.log_append_time_ms if is_appended_at else self._timestamp_ms
        return place


def new_future() -> DeliveryFuture:
    """The future of a record that is about to be appended."""
    # Not by a call of the class, which would make a tuple of Python integers first.
    return DeliveryFuture.__new__(DeliveryFuture)


class ProducerBatch:
    """Records that go to one partition together.

    Open: threads append, under the accumulator's lock. Then it is finished into `payload` and belongs to the
    sender, until `complete` notifies all that wait. `reserved` is its share of the buffer memory.
    A batch that was too large for the broker is split: then its records are in its `parts`, which are
    completed instead.
    """

    def __init__(self, topic: str, partition: int, capacity: int, created_ms: float) -> None:
        self.topic = topic
        self.partition = partition
        self.created_ms = created_ms
        self.count = 0
        self.size = HEADER_SIZE
        self.is_done = False
        self.base_offset = NO_OFFSET
        self.log_append_time_ms = -1
        self.error: BaseException | None = None
        self.record_errors: dict[int, BaseException] | None = None
        self.parts: list[ProducerBatch] | None = None
        self.payload: bytearray | memoryview | None = None
        self.reserved = capacity
        self.attempts = 0
        self.retry_at_ms = 0.0
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.is_transactional = False
        self._capacity = capacity
        self._encoded: Any = new_bytearray(capacity)
        if cython.compiled:
            self._out = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(self._encoded))
        else:
            self._out = self._encoded
        self._base_timestamp_ms = 0
        self._max_timestamp_ms = 0
        self._on_delivery: list[Any] = []
        self._done_callbacks: list[Any] | None = None
        self._waiting: list[Any] | None = None
        self.direct_read: DirectRead | None = None
        """Of its connection, if it was sent alone: waiting threads may read the response."""

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp_ms: int,
        on_delivery: Callable[[BaseException | None, RecordMetadata], object] | None,
    ) -> DeliveryFuture | None:
        """Append one record; None if it does not fit."""
        return self.append_with_future(new_future(), key, value, headers, timestamp_ms, on_delivery)

    def append_with_future(
        self,
        future: DeliveryFuture,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        timestamp_ms: int,
        on_delivery: Callable[[BaseException | None, RecordMetadata], object] | None,
    ) -> DeliveryFuture | None:
        """Like `append`, with a future that exists already: no object is created here.

        Creating an object may start the garbage collector, and so another thread, which must see consistent
        size and count.
        """
        if self.count == 0:
            self._base_timestamp_ms = timestamp_ms
            self._max_timestamp_ms = timestamp_ms
        delta = wrapping_difference(timestamp_ms, self._base_timestamp_ms)
        body = size_of_body(delta, self.count, key, value, headers)
        if self.size + size_of_varint(body) + body > self._capacity:
            return None
        self.size = write_record(self._out, self.size, body, delta, self.count, key, value, headers)
        self._max_timestamp_ms = max(self._max_timestamp_ms, timestamp_ms)
        future._batch = self
        future._index = self.count
        future._timestamp_ms = timestamp_ms
        self.count += 1
        if on_delivery is not None:
            self._on_delivery.append(future)
            self._on_delivery.append(on_delivery)
        return future

    def set_encoded(
        self, encoded: bytearray | memoryview, count: int, base_timestamp_ms: int, max_timestamp_ms: int
    ) -> None:
        """Set the encoded records of this batch, which has no others, after space for a header."""
        self._encoded = encoded
        self._capacity = self.size = self.reserved = len(encoded)
        self.count = count
        self._base_timestamp_ms = base_timestamp_ms
        self._max_timestamp_ms = max_timestamp_ms

    def future(self, index: int) -> DeliveryFuture:
        """The metadata of a record by its index in the batch."""
        return DeliveryFuture(self, index, self._max_timestamp_ms)

    def finish(self, codec: Codec, level: int | None) -> None:
        """Create the payload with the sequence of the batch; nothing can be appended any more."""
        encoded, self._encoded = self._encoded, None
        assert encoded is not None
        if len(encoded) > self.size:
            del encoded[self.size :]
        encoded = with_codec(encoded, codec, level)
        write_header(
            memoryview(encoded),
            0,
            NO_PARTITION_LEADER_EPOCH,
            codec | (TRANSACTIONAL_FLAG if self.is_transactional else 0),
            self.count - 1,
            self._base_timestamp_ms,
            self._max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        self.payload = encoded

    def renumber(self) -> None:
        """Write another producer id, epoch and base sequence into a finished batch that no broker has."""
        assert self.payload is not None
        stamp_producer(self.payload, 0, self.producer_id, self.producer_epoch, self.base_sequence)

    def split_into(self, parts: list[ProducerBatch]) -> None:
        """Its records are in these batches from now on; waiting threads wait for them instead."""
        with _ending:
            waiting, self._waiting = self._waiting, None
            on_delivery, self._on_delivery = self._on_delivery, []
            callbacks, self._done_callbacks = self._done_callbacks or [], None
            self.parts = parts
            for place in range(0, len(on_delivery), 2):
                future: DeliveryFuture = on_delivery[place]
                future = future._part()
                future._batch._on_delivery += [future, on_delivery[place + 1]]
            for future, callback in callbacks:
                part = future._part()._batch
                part._done_callbacks = [*(part._done_callbacks or ()), (future, callback)]
        self._encoded = self.payload = None
        for lock in waiting or ():
            lock.release()

    def moved(self, index: int, timestamp_ms: int) -> DeliveryFuture:
        """The future of a record of this batch, which was split, in the part where it is now."""
        assert self.parts is not None
        for part in self.parts:
            if index < part.count:
                return DeliveryFuture(part, index, timestamp_ms)
            index -= part.count
        raise IndexError(index)

    def current_batches(self) -> list[ProducerBatch]:
        """The batches that its records are in now: itself, unless it was split."""
        if self.parts is None:
            return [self]
        return [one for part in self.parts for one in part.current_batches()]

    # Completion.

    def complete(
        self, base_offset: int, log_append_time_ms: int = -1, error: BaseException | None = None
    ) -> bool:
        """Complete all records; False if they are complete already."""
        with _ending:
            if self.is_done:
                return False
            self.base_offset = base_offset
            self.log_append_time_ms = log_append_time_ms
            self.error = error
            self.is_done = True
            waiting, self._waiting = self._waiting, None
            on_delivery, self._on_delivery = self._on_delivery, []
            callbacks, self._done_callbacks = self._done_callbacks, None
        self._encoded = self.payload = self.direct_read = None
        if waiting is not None:
            for lock in waiting:
                lock.release()
        self._call_on_delivery(on_delivery)
        if callbacks is not None:
            for future, callback in callbacks:
                try:
                    callback(future)
                except Exception:
                    _log.exception("a done callback raised")
        return True

    def error_of(self, index: int) -> BaseException | None:
        """Why a record was not delivered: its own error if the broker named the record, else the batch's."""
        if self.record_errors is not None and index in self.record_errors:
            return self.record_errors[index]
        return self.error

    def abandon(self, error: BaseException) -> None:
        """Complete it without callbacks, which belong to another process."""
        self.error = error
        self.is_done = True
        self._waiting = self._done_callbacks = None
        self._on_delivery = []

    def _call_on_delivery(self, on_delivery: list[Any]) -> None:
        for place in range(0, len(on_delivery), 2):
            future: DeliveryFuture = on_delivery[place]
            try:
                on_delivery[place + 1](self.error_of(future._index), future.metadata())
            except Exception:
                _log.exception("on_delivery raised")

    @property
    def has_callbacks(self) -> bool:
        """Whether there are callbacks, which the loop calls."""
        return bool(self._on_delivery) or self._done_callbacks is not None

    def read_available(self) -> None:
        """Read the response if it has arrived and no other thread reads."""
        if self.direct_read is not None:
            self.direct_read.read_available()

    def _wait_directly(self, timeout: float) -> float:
        """Read the response on this thread while direct reading is active; returns the time that is left."""
        direct_read = self.direct_read
        if direct_read is None or not direct_read.is_active or not direct_read.wait_lock.acquire(False):
            return timeout
        deadline = monotonic_seconds() + timeout
        try:
            while direct_read.is_active and not self.is_done and timeout > 0:
                direct_read.wait(timeout)
                timeout = deadline - monotonic_seconds()
        finally:
            direct_read.wait_lock.release()
        return timeout

    def wait(self, timeout: float | None) -> None:
        """Wait until it is complete or was split; TimeoutError after `timeout` seconds."""
        left = self._wait_directly(math.inf if timeout is None else timeout)
        lock = threading.Lock()
        lock.acquire()
        with _ending:
            if self.is_done or self.parts is not None:
                return
            if self._waiting is None:
                self._waiting = []
            self._waiting.append(lock)
        if not lock.acquire(timeout=-1 if timeout is None else max(0.0, left)):
            raise TimeoutError(
                f"a record for {self.topic}-{self.partition} is not delivered after {timeout} s"
            )

    def add_done_callback(self, future: DeliveryFuture, callback: Callable[[DeliveryFuture], object]) -> bool:
        """Add a callback; False if the batch is complete or was split."""
        with _ending:
            if self.is_done or self.parts is not None:
                return False
            if self._done_callbacks is None:
                self._done_callbacks = []
            self._done_callbacks.append((future, callback))
        if self.direct_read is not None:
            self.direct_read.request_stop()
        return True


def after_fork() -> None:
    """In a child process: a thread of the parent may have held the lock."""
    global _ending  # noqa: PLW0603
    _ending = threading.Lock()


def smallest_batch_size(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """The size of a batch of this record alone."""
    body: int = size_of_body(0, 0, key, value, headers)
    length: int = size_of_varint(body)
    return HEADER_SIZE + length + body
