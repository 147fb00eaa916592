"""The sender: takes batches that are ready, sends them to the leaders, and completes them.

Runs on one loop; a single batch may be sent without it (`SingleBatchSender`). `pump` does all that can be
done now and never waits. Connections, metadata and producer ids are requested in tasks, which call `pump`
again when they are done.
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple, cast

from odradek.client.broker_errors import broker_error
from odradek.client.errors import BrokerError, ClientError, is_retriable
from odradek.client.metadata import Node
from odradek.client.network.background_tasks import BackgroundTasks
from odradek.client.network.backoff import Backoff
from odradek.client.network.brokers import STALE_METADATA_ERRORS, Brokers
from odradek.client.network.connection import BrokerConnection
from odradek.client.network.in_flight import CallbackHandler
from odradek.client.producer.batches.accumulator import Accumulator, PartitionQueue
from odradek.client.producer.batches.batch import NO_OFFSET, ProducerBatch
from odradek.client.producer.batches.idempotence import PartitionOrder, ProducerId
from odradek.client.producer.batches.splitting import split_batch
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.client.producer.sending.failure_log import METADATA, PRODUCER_ID, FailureLog
from odradek.client.producer.sending.producer_ids import request_producer_id
from odradek.client.producer.sending.record_errors import batch_error, record_errors
from odradek.client.producer.statistics import ProducerStatistics
from odradek.client.producer.transactions.manager import LAST_PRODUCE_OF_V1, TransactionManager
from odradek.client.producer.transactions.requests import concurrent_pause_ms
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.records.batch import NO_PRODUCER_ID
from odradek.records.compression import Codec

# The broker does not have the batch, because it expects another sequence.
WRONG_NUMBER = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)
# The broker does not have the batch, and may accept smaller ones.
TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
FIRST_WITH_TOPIC_IDS = 13


class Sent(NamedTuple):
    """One batch of a request in flight."""

    queue: PartitionQueue
    batch: ProducerBatch


class Sender:
    """Empties an accumulator. Lives on the loop of its brokers."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        brokers: Brokers,
        statistics: ProducerStatistics,
    ) -> None:
        self.config = config
        self.accumulator = accumulator
        self.brokers = brokers
        self.statistics = statistics
        self._loop = asyncio.get_running_loop()
        self.codec = Codec[config.compression_type.upper()]
        self.level = config.compression_level
        self._max_in_flight = config.max_in_flight_requests_per_connection
        self._backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        self.producer: ProducerId | None = None
        self.transactions: TransactionManager | None = None
        """For a producer with a transactional id; set before the first batch is sent."""
        self.first_sequences: dict[TopicPartition, int] = {}
        """Of a transaction that another process began, the sequences where this one continues."""
        self._in_flight_waiters: list[asyncio.Future[None]] = []
        self.active: dict[PartitionQueue, None] = {}
        self._tasks = BackgroundTasks("sender", self._loop, self.pump)
        self._timer: asyncio.TimerHandle | None = None
        self.is_watching = False
        """Whether a timer is set, after which expired batches fail."""
        self._next_pump_ms = math.inf
        self._is_stopped = False
        # Guards the state of the sender, which the loop and threads that send directly change.
        self.lock = threading.Lock()
        self.failures = FailureLog()

    def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        self.is_watching = False
        if self._timer is not None:
            self._timer.cancel()
        self._tasks.stop()

    @staticmethod
    def _now_ms() -> float:
        """The clock by which the accumulator counts."""
        return time.monotonic() * 1000

    # Pumping.

    def pump(self) -> None:
        """Close, expire and send batches that are due, then schedule the next call."""
        if not self._is_stopped:
            with self.lock:
                self._pump()

    def _pump(self) -> None:
        accumulator, linger_ms = self.accumulator, self.config.linger_ms
        sleeps_until_ms = None
        while sleeps_until_ms is None:
            now_ms = self._now_ms()
            accumulator.close_lingered(linger_ms, now_ms)
            self._take_ready()
            expires_ms = self._expire(now_ms)
            while self.active and self._send_one_request_each(now_ms):
                pass
            sleeps_until_ms = accumulator.prepare_to_wait(linger_ms)
        retries_ms = min(map(_retry_at_ms, self.active), default=math.inf)
        self._schedule_pump(min(sleeps_until_ms, expires_ms, retries_ms), now_ms)
        if accumulator.topics and self.brokers.metadata.needs_refresh(
            now_ms, self.config.metadata_max_age_ms
        ):
            self._tasks.begin("metadata", self._refresh)

    def _take_ready(self) -> None:
        for queue in self.accumulator.take_ready():
            self.order_of(queue)
            self.active[queue] = None

    def order_of(self, queue: PartitionQueue) -> PartitionOrder:
        """The order of the batches of a partition."""
        if queue.order is None:
            partition = TopicPartition(queue.topic, queue.partition)
            queue.order = PartitionOrder(self._max_in_flight, partition)
            if self.producer is not None and partition in self.first_sequences:
                queue.order.resume(self.producer, self.first_sequences[partition])
        order: PartitionOrder = queue.order
        return order

    def handle_single_response(
        self,
        connection: BrokerConnection,
        queue: PartitionQueue,
        batch: ProducerBatch,
        frame: memoryview | None,
        error: BaseException | None,
    ) -> None:
        """Handle a response to `SingleBatchSender` that is not a plain success."""
        version = connection.versions.best(ApiKey.PRODUCE)
        self._on_response(connection, version, [Sent(queue, batch)], frame, error)

    def _schedule_pump(self, at_ms: float, now_ms: float) -> None:
        """Pump again at a time. A timer that is too early costs less than setting another."""
        if at_ms < self._next_pump_ms:
            if self._timer is not None:
                self._timer.cancel()
            self._next_pump_ms = at_ms
            self._timer = self._loop.call_later((at_ms - now_ms) / 1000, self._on_timer)
            self.is_watching = True

    def _on_timer(self) -> None:
        self._timer, self._next_pump_ms, self.is_watching = None, math.inf, False
        self.pump()

    def _expire(self, now_ms: float) -> float:
        """Fail the batches that were not delivered in time; returns when the next one expires."""
        timeout_ms = self.config.delivery_timeout_ms
        while (oldest := self.accumulator.oldest()) is not None:
            if oldest.created_ms + timeout_ms > now_ms:
                return oldest.created_ms + timeout_ms
            queue = self.accumulator.topics[oldest.topic].queues[oldest.partition]
            why = self.failures.why(queue, self.brokers.metadata)
            partition = TopicPartition(oldest.topic, oldest.partition)
            self._fail(oldest, DeliveryTimedOut(partition, timeout_ms, oldest.attempts, why))
        return math.inf

    def _send_one_request_each(self, now_ms: float) -> bool:
        """Send at most one request to each broker; whether there was any."""
        requests: dict[BrokerConnection, list[Sent]] = {}
        sizes: dict[BrokerConnection, int] = {}
        for queue in list(self.active):
            connection = self._connection_for(queue)
            if connection is None:
                continue
            # One batch of a partition in each request; the last one may exceed the size.
            if requests.get(connection) and sizes[connection] > self.config.max_request_size:
                continue
            batch = self._next_batch(queue, now_ms)
            if batch is not None:
                requests.setdefault(connection, []).append(Sent(queue, batch))
                assert batch.payload is not None
                sizes[connection] = sizes.get(connection, 0) + len(batch.payload)
        for connection, group in requests.items():
            self._send(connection, group)
        return bool(requests)

    def _connection_for(self, queue: PartitionQueue) -> BrokerConnection | None:
        """A connection to the leader that allows another request; else None, and a task that opens one."""
        if self.transactions is not None:
            if not self.transactions.may_send_to(queue.order.partition):
                if self.transactions.has_pending_partitions:
                    self._tasks.begin("partitions of the transaction", self.transactions.add_partitions)
                return None
        elif self.config.enable_idempotence and (self.producer is None or queue.order.is_exhausted):
            self._tasks.begin("producer id", self._get_producer_id)
            return None
        view = self.brokers.metadata.leader(queue.order.partition)
        if view is None:
            self.brokers.metadata.mark_stale()
            return None
        connection = self.brokers.open_connection(view.leader_id)
        if connection is None:
            self._tasks.begin(view.leader_id, partial(self._connect, view.leader_id))
            return None
        return connection if connection.in_flight < self._max_in_flight else None

    def _next_batch(self, queue: PartitionQueue, now_ms: float) -> ProducerBatch | None:
        order: PartitionOrder = queue.order
        producer = self.producer if self.config.enable_idempotence else None
        batch = order.next_batch(queue.closed, now_ms, producer)
        if not queue.closed and not order.retries:
            self.active.pop(queue, None)
        if batch is None:
            return None
        if batch.is_done:
            order.failed(batch)
            return self._next_batch(queue, now_ms)
        if batch.payload is None:
            batch.is_transactional = self.transactions is not None
            batch.finish(self.codec, self.level)
        elif batch.attempts and batch.producer_id != NO_PRODUCER_ID:
            batch.renumber()
        return batch

    # One request.

    def _send(self, connection: BrokerConnection, group: list[Sent]) -> None:
        version = self._produce_version(connection)
        request = self._request(version, group)
        acks = self.config.required_acks
        self.statistics.count_request(len(group), sum(len(batch.payload or b"") for _, batch in group))
        try:
            if acks == 0:
                connection.send_without_response(request, version)
                self._all_delivered(group)
                return
            answered = CallbackHandler(partial(self._on_response, connection, version, group))
            connection.send_for(answered, request, version)
        except ClientError as error:
            self._all_retry(group, error)

    def _produce_version(self, connection: BrokerConnection) -> int:
        """Version 12 says that the broker shall add partitions to the transaction: it is for v2 only."""
        is_v1 = self.transactions is not None and not self.transactions.uses_v2
        return connection.versions.best(ApiKey.PRODUCE, LAST_PRODUCE_OF_V1 if is_v1 else None)

    def _on_response(
        self,
        connection: BrokerConnection,
        version: int,
        group: list[Sent],
        frame: memoryview | None,
        error: BaseException | None,
    ) -> None:
        with self.lock:
            if frame is None:
                assert error is not None
                self._all_retry(group, error)
            else:
                self._handle_frame(version, frame, group)
        if self._in_flight_waiters:
            self._notify_if_none_in_flight()
        # Without batches left the last pump has set the timer.
        if self.active:
            connection.after_responses(self.pump)

    def _handle_frame(self, version: int, frame: memoryview, group: list[Sent]) -> None:
        try:
            response = decode_response(ApiKey.PRODUCE, version, frame)[1]
        except ProtocolError as problem:
            self._all_retry(group, problem)
        else:
            self._handle_response(cast("ProduceResponse", response), group)

    def _request(self, version: int, group: list[Sent]) -> ProduceRequest:
        topics: dict[str, list[ProduceRequest.TopicData.PartitionData]] = {}
        for queue, batch in group:
            row = ProduceRequest.TopicData.PartitionData(index=queue.partition, records=batch.payload)
            topics.setdefault(queue.topic, []).append(row)
        request = ProduceRequest(acks=self.config.required_acks, timeout_ms=self.config.request_timeout_ms)
        if self.transactions is not None:
            request.transactional_id = self.transactions.transactional_id
        for name, rows in topics.items():
            if version >= FIRST_WITH_TOPIC_IDS:
                topic_id = self.brokers.metadata.topics[name].topic_id
                request.topic_data.append(ProduceRequest.TopicData(topic_id=topic_id, partition_data=rows))
            else:
                request.topic_data.append(ProduceRequest.TopicData(name=name, partition_data=rows))
        return request

    def _handle_response(self, response: ProduceResponse, group: list[Sent]) -> None:
        names = self.brokers.metadata.names
        rows: dict[tuple[str, int], ProduceResponse.Responses.PartitionResponses] = {}
        for topic in response.responses:
            name = topic.name or names.get(topic.topic_id, "")
            for row in topic.partition_responses:
                rows[name, row.index] = row
        for endpoint in response.node_endpoints:
            self.brokers.metadata.add_node(
                Node(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
            )
        for sent in group:
            result = rows.get((sent.queue.topic, sent.queue.partition))
            if result is None:
                self._retry(sent, broker_error(ErrorCode.UNKNOWN_TOPIC_ID, "the response lacks it"))
            elif result.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                sent.queue.order.delivered(sent.batch)
                self.failures.over(sent.queue)
                self.statistics.count_delivered(sent.batch.count)
                self.accumulator.complete(sent.batch, result.base_offset, result.log_append_time_ms)
            else:
                self._handle_error(sent, result)

    def _handle_error(self, sent: Sent, row: ProduceResponse.Responses.PartitionResponses) -> None:
        error = batch_error(row)
        partition = TopicPartition(sent.queue.topic, sent.queue.partition)
        is_news = self.brokers.metadata.take_leader(
            partition, row.current_leader.leader_id, row.current_leader.leader_epoch
        )
        if row.error_code in STALE_METADATA_ERRORS and not is_news:
            self.brokers.metadata.mark_stale()
        if row.error_code in WRONG_NUMBER and sent.batch.base_sequence >= 0:
            self._renumber(sent, error)
        elif (
            row.error_code in TOO_LARGE and sent.batch.count > 1 and not (sent.batch.is_done or self._is_over)
        ):
            self._split(sent)
        elif error.is_retriable:
            self._retry(sent, error)
        else:
            sent.queue.order.failed(sent.batch)
            sent.batch.record_errors = record_errors(row)
            self._fail(sent.batch, error)

    @property
    def _is_over(self) -> bool:
        """Whether the transaction has failed or is aborted, so that nothing of it is sent again."""
        return self.transactions is not None and not self.transactions.may_send

    def _renumber(self, sent: Sent, error: BrokerError) -> None:
        if sent.batch.is_done or sent.batch.attempts >= self.config.retries:
            self._retry(sent, error)
            return
        if self.transactions is not None:
            # Behind others it waits for them; as the first one only another epoch can help.
            if sent.batch is sent.queue.order.sent[0] or self._is_over:
                sent.queue.order.failed(sent.batch)
                self._fail(sent.batch, error)
            else:
                self._repeat(sent, error)
            return
        sent.queue.order.refused(sent.batch, sent.queue.closed, self._retry_at_ms(sent.batch))
        self.active[sent.queue] = None

    def _split(self, sent: Sent) -> None:
        parts = split_batch(sent.batch)
        self.accumulator.replace(sent.batch, parts)
        sent.queue.order.split(sent.batch, parts)
        self.statistics.batches_split += 1
        self.active[sent.queue] = None

    # Completion.

    def _all_delivered(self, group: list[Sent]) -> None:
        for queue, batch in group:
            queue.order.delivered(batch)
            self.statistics.count_delivered(batch.count)
            self.accumulator.complete(batch, NO_OFFSET)

    def _all_retry(self, group: list[Sent], error: BaseException) -> None:
        self.brokers.metadata.mark_stale()
        for sent in group:
            self._retry(sent, error)

    def _retry(self, sent: Sent, error: BaseException) -> None:
        """Send it again later, unless its delivery timeout or its retries are used up."""
        batch, order = sent.batch, sent.queue.order
        if batch.is_done or self._is_over or batch.attempts >= self.config.retries or not is_retriable(error):
            order.failed(batch)
            self._fail(batch, error)
            return
        self._repeat(sent, error)

    def _repeat(self, sent: Sent, error: BaseException) -> None:
        self.statistics.retries += 1
        self.failures.note(sent.queue, error)
        is_soon = isinstance(error, BrokerError) and error.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        if is_soon:
            retry_at_ms = self._now_ms() + concurrent_pause_ms(sent.batch.attempts)
        else:
            retry_at_ms = self._retry_at_ms(sent.batch)
        sent.queue.order.repeat(sent.batch, retry_at_ms)
        self.active[sent.queue] = None

    def _retry_at_ms(self, batch: ProducerBatch) -> float:
        return self._now_ms() + self._backoff.pause_ms(batch.attempts + 1, random.random())

    def _fail(self, batch: ProducerBatch, error: BaseException) -> None:
        if not batch.is_done:
            self.statistics.count_failed(batch.count)
        self.accumulator.complete(batch, NO_OFFSET, -1, error)
        if self.transactions is not None:
            self.transactions.batch_failed(error)

    # The end of a transaction.

    def drop_unsent(self, error: BaseException) -> None:
        """Fail the batches that are not in flight."""
        with self.lock:
            unsent = self.accumulator.take_unsent()
            for queue in self._queues():
                if queue.order is not None:
                    for batch in list(queue.order.retries):
                        queue.order.failed(batch)
                        unsent.append(batch)
                        if self.transactions is not None:
                            self.transactions.sequence_lost()
            self.active.clear()
        for batch in unsent:
            if not batch.is_done:
                self.statistics.count_failed(batch.count)
            self.accumulator.complete(batch, NO_OFFSET, -1, error)

    async def wait_until_none_in_flight(self) -> None:
        """Wait until no batch is in flight."""
        waiter = self._loop.create_future()
        self._in_flight_waiters.append(waiter)
        self._notify_if_none_in_flight()
        await waiter

    def _notify_if_none_in_flight(self) -> None:
        if any(queue.order is not None and queue.order.sent for queue in self._queues()):
            return
        waiters, self._in_flight_waiters = self._in_flight_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _queues(self) -> list[PartitionQueue]:
        return [queue for topic in self.accumulator.topics.values() for queue in topic.queues]

    def sequences(self) -> dict[TopicPartition, int]:
        """The sequence of the next record, of each partition that records were sent to."""
        orders = [queue.order for queue in self._queues() if queue.order is not None]
        return {order.partition: order.sequence for order in orders}

    def continue_sequences(self, sequences: Mapping[TopicPartition, int]) -> None:
        """Number the next batches as another process would; nothing may be in flight."""
        with self.lock:
            self.first_sequences = dict(sequences)
            for queue in self._queues():
                queue.order = None

    # Tasks.

    async def _connect(self, node_id: int) -> None:
        try:
            await self.brokers.connection(node_id)
            self.failures.over(node_id)
        except ClientError as error:
            self.failures.note(node_id, error)
            self.brokers.metadata.mark_stale()
            await asyncio.sleep(self.config.reconnect_backoff_ms / 1000)

    async def _refresh(self) -> None:
        try:
            await self.brokers.refresh()
            self.failures.over(METADATA)
        except (ClientError, BrokerError) as error:
            self.failures.note(METADATA, error)
            await asyncio.sleep(self.config.retry_backoff_ms / 1000)
        self.apply_metadata()
        if any(queue for queue in self.active if not self._has_leader(queue)):
            self.brokers.metadata.mark_stale()
            await asyncio.sleep(self.config.retry_backoff_ms / 1000)

    def _has_leader(self, queue: PartitionQueue) -> bool:
        return self.brokers.metadata.leader(TopicPartition(queue.topic, queue.partition)) is not None

    def apply_metadata(self) -> None:
        """Update the accumulator with the partitions of topics and which of them have a leader."""
        metadata = self.brokers.metadata
        for name, topic in metadata.topics.items():
            led = [
                number
                for number, view in sorted(topic.partitions.items())
                if view.leader_id in metadata.nodes
            ]
            self.accumulator.topic(name, len(topic.partitions), led)

    async def _get_producer_id(self) -> None:
        try:
            self.producer = await request_producer_id(self.brokers)
            self.failures.over(PRODUCER_ID)
        except (ClientError, BrokerError) as error:
            if is_retriable(error):
                self.failures.note(PRODUCER_ID, error)
                await asyncio.sleep(self.config.retry_backoff_ms / 1000)
                return
            # A fatal error: all batches and all later sends fail.
            self.accumulator.fail_sends(error)
            self.accumulator.fail_all(error)


def _retry_at_ms(queue: PartitionQueue) -> float:
    order: PartitionOrder = queue.order
    return order.retry_at_ms
