# cython: annotation_typing=False
"""Sends a single batch from the thread that made it, and handles the response.

A thread that sends one record and waits for it closes the batch and writes the request itself, made from a
template. Everything else is left to the sender, on its loop.

Compiled by Cython (single_batch_sender.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cython

from odradek.client.network.connection import BrokerConnection
from odradek.client.network.direct_read import DirectRead
from odradek.client.network.in_flight import ResponseHandler
from odradek.client.producer.batches.accumulator import PartitionQueue
from odradek.client.producer.batches.batch import ProducerBatch
from odradek.client.producer.batches.idempotence import PartitionOrder
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.produce_template import ProduceTemplate

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

if TYPE_CHECKING:
    from odradek.client.producer.sending.sender import Sender

_MAX_BYTES = 16 * 1024
"""An idle socket always accepts so much at once."""
_DIRECT_READ_AFTER = 3
"""Direct reading starts after so many responses to single batches, each within `_SOON_S` of the last."""
_SOON_S = 0.005
_MAX_IDLE_S = 0.01
"""Direct reading stops when no response has come for so long."""


class Route:
    """Connection and request template of a partition, valid for one edition of the metadata."""

    __slots__ = ("connection", "edition", "order", "queue", "template")

    def __init__(
        self,
        edition: int,
        queue: PartitionQueue,
        order: PartitionOrder,
        connection: BrokerConnection,
        template: ProduceTemplate,
    ) -> None:
        self.edition = edition
        self.queue = queue
        self.order = order
        self.connection = connection
        self.template = template


class SingleBatchResponse(ResponseHandler):
    """Handles the response to one batch; see `in_flight.ResponseHandler`."""

    __slots__ = ("_batch", "_owner", "_route")

    def __init__(self, owner: SingleBatchSender, route: Route, batch: ProducerBatch) -> None:
        self._owner = owner
        self._route = route
        self._batch = batch

    def done(self) -> bool:
        """Never: the sender always waits for it."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """On the loop: the response arrived."""
        self._owner.on_response(self._route, self._batch, frame)

    def handle(self, frame: memoryview) -> bool:
        """On a thread that reads directly: the response arrived."""
        return self._owner.handle_directly(self._route, self._batch, frame)

    def set_exception(self, error: BaseException, /) -> None:
        """The request failed."""
        self._owner.failed(self._route, self._batch, error)

    def exception(self) -> BaseException | None:
        """Not kept."""
        return None


class SingleBatchSender:
    """Sends single batches from any thread. Owned by a sender, whose lock it holds for each step."""

    __slots__ = (
        "_accumulator",
        "_active",
        "_direct_read",
        "_failures",
        "_in_a_row",
        "_is_idempotent",
        "_is_transactional",
        "_lock",
        "_max_idle_ms",
        "_may_follow",
        "_metadata",
        "_responded_at_s",
        "_routes",
        "_sender",
        "_statistics",
    )

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._accumulator = sender.accumulator
        self._active = sender.active
        self._metadata = sender.brokers.metadata
        self._statistics = sender.statistics
        self._failures = sender.failures
        self._lock = sender.lock
        self._routes: dict[PartitionQueue, Route] = {}
        self._direct_read: DirectRead | None = None
        self._in_a_row = 0
        self._responded_at_s = 0.0
        # Their requests have a transactional id, which templates have not.
        self._is_transactional = sender.config.transactional_id is not None
        self._is_idempotent = sender.config.enable_idempotence
        # Without waiting for the response of the batch before.
        self._may_follow = sender.config.max_in_flight_requests_per_connection > 1
        max_idle_ms = sender.config.connections_max_idle_ms
        self._max_idle_ms = math.inf if max_idle_ms < 0 else max_idle_ms

    def send(self) -> bool:
        """Send the only batch, if that is possible at once; False if the loop must send."""
        is_sent = self._pop_and_send()
        if self._direct_read is not None:
            # Reads the response of the batch before, in case nobody waits for it.
            self._direct_read.read_available()
        return is_sent

    def _pop_and_send(self) -> bool:
        if not self._lock.acquire(False):
            return False
        try:
            if self._is_transactional or self._active or not self._sender.is_watching:
                return False
            is_direct = self._direct_read is not None and self._direct_read.is_active
            queue = self._accumulator.pop_single(1 if is_direct and self._may_follow else 0)
            return queue is not None and self._send(queue)
        finally:
            self._lock.release()

    def _send(self, queue: PartitionQueue) -> bool:
        now_ms = monotonic_seconds() * 1000
        first: ProducerBatch = queue.closed[0]
        route = self._route(queue, now_ms) if first.size <= _MAX_BYTES else None
        if route is not None and first.has_callbacks and route.connection.is_read_directly:
            route = None  # nobody waits for the response: the loop must read it
        batch = None if route is None else self._next_batch(route, now_ms)
        if route is None or batch is None:
            self._accumulator.add_ready(queue)
            return False
        payload = batch.payload
        assert payload is not None
        size = len(payload)
        batch.direct_read = route.connection.direct_read
        if not route.connection.send_if_idle(
            SingleBatchResponse(self, route, batch), route.template, payload
        ):
            del self._routes[queue]
            batch.direct_read = None
            route.order.put_back(batch)
            self._active[queue] = None
            return False
        self._statistics.count_request(1, size)
        return True

    def _route(self, queue: PartitionQueue, now_ms: float) -> Route | None:
        """None if there is no connection to the leader."""
        route: Route | None = self._routes.get(queue)
        if route is None or route.edition != self._metadata.edition:
            route = self._find_route(queue)
            if route is None:
                return None
            self._routes[queue] = route
        if now_ms - route.connection.last_used_ms > self._max_idle_ms:
            # Firewalls and brokers may drop idle connections without closing them.
            del self._routes[queue]
            return None
        return route

    def _next_batch(self, route: Route, now_ms: float) -> ProducerBatch | None:
        """The finished batch, with its sequence number; None if there is no producer id."""
        producer = self._sender.producer if self._is_idempotent else None
        if self._is_idempotent and (producer is None or route.order.is_exhausted):
            return None
        batch = route.order.next_batch(route.queue.closed, now_ms, producer)
        if batch is not None:
            batch.finish(self._sender.codec, self._sender.level)
        return batch

    def _find_route(self, queue: PartitionQueue) -> Route | None:
        sender, metadata = self._sender, self._metadata
        order = sender.order_of(queue)
        view = metadata.leader(TopicPartition(queue.topic, queue.partition))
        connection = None if view is None else sender.brokers.open_connection(view.leader_id)
        if connection is None:
            return None
        version = connection.versions.best(ApiKey.PRODUCE)
        if not ProduceTemplate.serves(version):
            return None
        template = ProduceTemplate(
            version,
            connection.client_id,
            acks=sender.config.required_acks,
            timeout_ms=sender.config.request_timeout_ms,
            topic=queue.topic,
            topic_id=metadata.topics[queue.topic].topic_id,
            partition=queue.partition,
        )
        return Route(metadata.edition, queue, order, connection, template)

    def on_response(self, route: Route, batch: ProducerBatch, frame: memoryview) -> None:
        """On the loop: the response arrived."""
        base_offset: int = route.template.base_offset(frame)
        if base_offset < 0:
            self._sender.handle_single_response(route.connection, route.queue, batch, frame, None)
            return
        with self._lock:
            route.order.delivered(batch)
            self._failures.over(route.queue)
            self._statistics.count_delivered(batch.count)
        if self._active:
            route.connection.after_responses(self._sender.pump)
        elif batch.has_callbacks:
            self._in_a_row = 0  # callbacks run on the loop
        else:
            self._start_direct_read_if_frequent(route.connection)
        # Last: a thread that waits runs as soon as the batch is complete.
        self._accumulator.complete(batch, base_offset, route.template.log_append_time_ms(frame))

    def _start_direct_read_if_frequent(self, connection: BrokerConnection) -> None:
        now_s = monotonic_seconds()
        self._in_a_row = self._in_a_row + 1 if now_s - self._responded_at_s < _SOON_S else 0
        self._responded_at_s = now_s
        if self._in_a_row >= _DIRECT_READ_AFTER:
            self._direct_read = connection.start_direct_read(_MAX_IDLE_S)

    def handle_directly(self, route: Route, batch: ProducerBatch, frame: memoryview) -> bool:
        """On another thread: the response arrived; False, without any effect, if the loop must handle it.

        No Python code runs until the batch is complete, so that KeyboardInterrupt cannot come in between.
        """
        base_offset: int = route.template.base_offset(frame)
        if base_offset < 0 or self._active or batch.has_callbacks or not self._lock.acquire(False):
            return False
        try:
            route.order.delivered(batch)
        finally:
            self._lock.release()
        self._accumulator.complete(batch, base_offset, route.template.log_append_time_ms(frame))
        self._failures.over(route.queue)
        self._statistics.count_delivered(batch.count)
        return True

    def failed(self, route: Route, batch: ProducerBatch, error: BaseException) -> None:
        """On the loop: the request failed."""
        if batch.is_done and batch.error is None:
            return  # it is complete: KeyboardInterrupt was raised after that
        self._sender.handle_single_response(route.connection, route.queue, batch, None, error)
