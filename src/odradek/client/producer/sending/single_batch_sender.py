# cython: annotation_typing=False
"""The way of a batch that is alone: from the thread that made it to the leader, and its answer back.

Whoever sends one record and waits for it gains nothing from a thread in between: its own thread closes the
batch and writes the request, made from a template. All that is not as usual is left to the sender, which
works on its loop.

Compiled by Cython (lone_way.pxd has the C types), or interpreted as is.
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

_MOST_BYTES = 16 * 1024
"""What an idle socket takes at once in any case."""
_LEND_AFTER = 3
"""So many lone answers, each soon after the other."""
_SOON_S = 0.005
_LONGEST_LULL_S = 0.01
"""A connection that is lent is read on the loop again when nothing has come for so long."""


class Route:
    """How batches of a partition get to its leader, worked out once for an edition of the metadata."""

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
    """Waits for the answer to one batch; see `in_flight.Answer`."""

    __slots__ = ("_batch", "_route", "_way")

    def __init__(self, way: SingleBatchSender, route: Route, batch: ProducerBatch) -> None:
        self._way = way
        self._route = route
        self._batch = batch

    def done(self) -> bool:
        """There is always somebody."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """The answer came."""
        self._way.answered(self._route, self._batch, frame)

    def take(self, frame: memoryview) -> bool:
        """The answer came to a thread that the connection is lent to."""
        return self._way.taken(self._route, self._batch, frame)

    def set_exception(self, error: BaseException, /) -> None:
        """It never will."""
        self._way.failed(self._route, self._batch, error)

    def exception(self) -> BaseException | None:
        """Nothing is kept here."""
        return None


class SingleBatchSender:
    """Sends what is alone, from any thread. Owned by a sender, whose turn it takes for each step."""

    __slots__ = (
        "_accumulator",
        "_active",
        "_answered_at_s",
        "_in_a_row",
        "_is_idempotent",
        "_loan",
        "_max_idle_ms",
        "_may_follow",
        "_metadata",
        "_routes",
        "_sender",
        "_statistics",
        "_troubles",
        "_turn",
    )

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._accumulator = sender.accumulator
        self._active = sender.active
        self._metadata = sender.brokers.metadata
        self._statistics = sender.statistics
        self._troubles = sender.troubles
        self._turn = sender.turn
        self._routes: dict[PartitionQueue, Route] = {}
        self._loan: DirectRead | None = None
        self._in_a_row = 0
        self._answered_at_s = 0.0
        self._is_idempotent = sender.config.enable_idempotence
        # Without waiting for the answer of the one before.
        self._may_follow = sender.config.max_in_flight_requests_per_connection > 1
        max_idle_ms = sender.config.connections_max_idle_ms
        self._max_idle_ms = math.inf if max_idle_ms < 0 else max_idle_ms

    def send(self) -> bool:
        """Send the only batch there is, if it can go at once; False if the loop must look."""
        is_sent = self._take_and_send()
        if self._loan is not None:
            # The answer of the one before, which nobody may have waited for; the broker is busy meanwhile.
            self._loan.catch_up()
        return is_sent

    def _take_and_send(self) -> bool:
        if not self._turn.acquire(False):
            return False
        try:
            if self._active or not self._sender.is_watching:
                return False
            is_lent = self._loan is not None and self._loan.is_lent
            queue = self._accumulator.take_lone(1 if is_lent and self._may_follow else 0)
            return queue is not None and self._send(queue)
        finally:
            self._turn.release()

    def _send(self, queue: PartitionQueue) -> bool:
        now_ms = monotonic_seconds() * 1000
        lone: ProducerBatch = queue.closed[0]
        route = self._route(queue, now_ms) if lone.size <= _MOST_BYTES else None
        if route is not None and lone.has_callbacks and route.connection.is_lent:
            route = None  # nobody waits for the answer: the loop must read it
        batch = None if route is None else self._next_batch(route, now_ms)
        if route is None or batch is None:
            self._accumulator.list_again(queue)
            return False
        payload = batch.payload
        assert payload is not None
        size = len(payload)
        batch.loan = route.connection.loan
        if not route.connection.send_alone(SingleBatchResponse(self, route, batch), route.template, payload):
            del self._routes[queue]
            batch.loan = None
            route.order.put_back(batch)
            self._active[queue] = None
            return False
        self._statistics.count_request(1, size)
        return True

    def _route(self, queue: PartitionQueue, now_ms: float) -> Route | None:
        """None if the leader cannot be reached at once."""
        route: Route | None = self._routes.get(queue)
        if route is None or route.edition != self._metadata.edition:
            route = self._find_route(queue)
            if route is None:
                return None
            self._routes[queue] = route
        if now_ms - route.connection.last_used_ms > self._max_idle_ms:
            # Firewalls and brokers forget idle connections without a word.
            del self._routes[queue]
            return None
        return route

    def _next_batch(self, route: Route, now_ms: float) -> ProducerBatch | None:
        """The batch, numbered and finished; None if there is no number for it."""
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

    def answered(self, route: Route, batch: ProducerBatch, frame: memoryview) -> None:
        """On the loop: the answer came."""
        base_offset: int = route.template.base_offset(frame)
        if base_offset < 0:
            self._sender.take_lone_answer(route.connection, route.queue, batch, frame, None)
            return
        with self._turn:
            route.order.delivered(batch)
            self._troubles.over(route.queue)
            self._statistics.count_delivered(batch.count)
        if self._active:
            route.connection.afterwards(self._sender.pump)
        elif batch.has_callbacks:
            self._in_a_row = 0  # they are the loop's to call
        else:
            self._lend_if_hurried(route.connection)
        # Last: whoever waits wants the interpreter as soon as it is told.
        self._accumulator.complete(batch, base_offset, route.template.log_append_time_ms(frame))

    def _lend_if_hurried(self, connection: BrokerConnection) -> None:
        now_s = monotonic_seconds()
        self._in_a_row = self._in_a_row + 1 if now_s - self._answered_at_s < _SOON_S else 0
        self._answered_at_s = now_s
        if self._in_a_row >= _LEND_AFTER:
            self._loan = connection.lend(_LONGEST_LULL_S)

    def taken(self, route: Route, batch: ProducerBatch, frame: memoryview) -> bool:
        """On another thread: the answer came; False, and nothing is done, if it is a matter for the loop.

        No Python code runs until everybody is told, so that not even Ctrl-C comes in between.
        """
        base_offset: int = route.template.base_offset(frame)
        if base_offset < 0 or self._active or batch.has_callbacks or not self._turn.acquire(False):
            return False
        try:
            route.order.delivered(batch)
        finally:
            self._turn.release()
        self._accumulator.complete(batch, base_offset, route.template.log_append_time_ms(frame))
        self._troubles.over(route.queue)
        self._statistics.count_delivered(batch.count)
        return True

    def failed(self, route: Route, batch: ProducerBatch, error: BaseException) -> None:
        """On the loop: there will be no answer."""
        if batch.is_done and batch.error is None:
            return  # there was one, and Ctrl-C came just after everybody was told
        self._sender.take_lone_answer(route.connection, route.queue, batch, None, error)
