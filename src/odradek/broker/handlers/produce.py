# cython: annotation_typing=False
"""Produce, API key 0: append batches to partitions that this broker leads.

Versions 3-13 (0-2 are advertised, because older librdkafka otherwise stops compressing, and refused).
5: log start offset.  7: zstd.  8: errors of single records.  9: flexible.  10: the current leader in the
response.  12: transactions v2, the leader adds the partition.  13: topic ids.

A batch with which a transaction begins in a partition waits until the transaction coordinator has confirmed
that the partition is part of it. A batch for a partition whose new leader epoch is being written waits until
it is. The requests that follow on the connection wait as well.

Compiled by Cython (produce.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import math
from typing import Any

import cython

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import STEPS_PER_YIELD, CooperativeYield
from odradek.broker.requests.dispatch import HandlerResult, handles
from odradek.broker.requests.services import Services
from odradek.broker.requests.transaction_verification import (
    ADD_FROM,
    UnverifiedBatch,
    supported_operation,
    verify,
)
from odradek.broker.requests.waiting.purgatory import CommitWait, CommitWaiter
from odradek.broker.security.acls import AccessDenied, Operation, Resource, ResourceType
from odradek.cluster.metadata_answers import INTERNAL_TOPICS
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.errors import StorageError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.codec import new_struct
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.protocol.structs import default_plan
from odradek.records.batch import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    HEADER_SIZE,
    PRODUCER_POSITION,
    TRANSACTIONAL_FLAG,
)
from odradek.records.compression import Codec
from odradek.records.errors import InvalidRecord
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import ALL_IN_SYNC, Partition
from odradek.replication.replica_manager import UnknownPartition

if cython.compiled:
    from cython.cimports.odradek.common.byte_access import int16_at, int32_at, int64_at, raw_bytes
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.byte_access import int16_at, int32_at, int64_at, raw_bytes
    from odradek.common.c_clocks import monotonic_seconds

Row = ProduceResponse.Responses.PartitionResponses
# Of a request for very many partitions.
BATCHES_PER_YIELD = 100
# How long one request may block the event loop. Only hundreds of batches that decompress to 64 times
# their size come near it; what is left of them is refused with a retriable error.
MAX_SECONDS = 0.5
TOPIC_IDS_FROM = 13
ZSTD_FROM = 7
# The client id that Kafka lets write into internal topics.
ADMIN_CLIENT_ID = "__admin_client"
LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1

_RESPONSE = default_plan(ProduceResponse)
_TOPIC = default_plan(ProduceResponse, "responses")
_ROW = default_plan(ProduceResponse, "responses", "partition_responses")
_STEPS_PER_YIELD = STEPS_PER_YIELD
_MAX_SECONDS = MAX_SECONDS
_TOPIC_IDS_FROM, _ZSTD_FROM, _V2_FROM = TOPIC_IDS_FROM, ZSTD_FROM, ADD_FROM
_ALL_IN_SYNC = ALL_IN_SYNC
_ATTRIBUTES_AT = LOW_ATTRIBUTES_POSITION
_TRANSACTIONAL, _CODEC_MASK, _ZSTD = TRANSACTIONAL_FLAG, CODEC_MASK, Codec.ZSTD
_HEADER_SIZE, _PRODUCER_AT = HEADER_SIZE, PRODUCER_POSITION
# Producer id and epoch.
_PRODUCER_BYTES = 10
_INTERNAL_TOPICS = INTERNAL_TOPICS
_WRITE, _TOPIC_TYPE = Operation.WRITE, ResourceType.TOPIC
_NONE = ErrorCode.NONE
_NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@handles(ApiKey.PRODUCE, versions=(3, 13))
def produce(context: RequestContext, request: ProduceRequest) -> HandlerResult:
    """Append what can be appended; each partition has its own outcome."""
    if request.transactional_id is not None:
        if context.services.authorizer is not None:
            _authorize_transaction(context, request)
        _check_one_producer(request)
    if _partition_count(request) > _STEPS_PER_YIELD:
        _keep_records(request)
        # What the client sends next must not overtake it.
        context.connection.pause()
        return _produce_with_yields(context, request)
    if not context.services.replicas.pending_epochs.is_empty and _pending_partitions(context, request):
        _keep_records(request)
        context.connection.pause()
        return _produce_with_yields(context, request)
    appending = Appending(context, request)
    appending.deadline = monotonic_seconds() + _MAX_SECONDS
    for topic in request.topic_data:
        appending.begin_topic(topic)
        for part in topic.partition_data:
            appending.append(part)
    if appending.unverified:
        context.connection.pause()
        return _produce_verified(appending)
    return appending.answer()


async def _produce_verified(appending: Appending) -> ProduceResponse | None:
    """The rest of a request with batches that begin a transaction."""
    try:
        await appending.append_unverified()
    finally:
        appending.context.connection.resume()
    return appending.answer()


async def _produce_with_yields(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """The same for very many partitions, or while leader epochs are pending; serves others in between."""
    yielding = CooperativeYield(BATCHES_PER_YIELD)
    pending_epochs = context.services.replicas.pending_epochs
    try:
        await pending_epochs.wait_until_written(_pending_partitions(context, request))
        appending = Appending(context, request)
        for topic in request.topic_data:
            name = appending.begin_topic(topic)
            async for part in yielding.over(topic.partition_data):
                if not pending_epochs.is_empty:
                    await pending_epochs.wait_until_written([TopicPartition(name, part.index)])
                appending.append(part)
        await appending.append_unverified()
    finally:
        context.connection.resume()
    return appending.answer()


def _pending_partitions(context: RequestContext, request: ProduceRequest) -> list[TopicPartition]:
    """The partitions of the request whose new leader epoch is being written at this moment."""
    replicas = context.services.replicas
    has_ids = context.version >= _TOPIC_IDS_FROM
    found = []
    for topic in request.topic_data:
        name = replicas.topic_names.get(topic.topic_id, "") if has_ids else topic.name
        for part in topic.partition_data:
            partition = TopicPartition(name, part.index)
            if partition in replicas.pending_epochs:
                found.append(partition)
    return found


def _partition_count(request: ProduceRequest) -> int:
    count = 0
    for topic in request.topic_data:
        count += len(topic.partition_data)
    return count


def _keep_records(request: ProduceRequest) -> None:
    """Copy them: the buffer that they came in is used again before they are all appended."""
    for topic in request.topic_data:
        for part in topic.partition_data:
            if part.records:
                part.records = memoryview(bytearray(part.records))


def _authorize_transaction(context: RequestContext, request: ProduceRequest) -> None:
    """AccessDenied for transactional batches of an id that the client may not use."""
    transaction = Resource(ResourceType.TRANSACTIONAL_ID, request.transactional_id or "")
    if context.is_allowed(Operation.WRITE, transaction):
        return
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is None or len(records) <= _ATTRIBUTES_AT:
                continue
            if records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                raise AccessDenied(context.principal, Operation.WRITE, transaction)


def _check_one_producer(request: ProduceRequest) -> None:
    """INVALID_PRODUCER_ID_MAPPING for transactional batches of more than one producer id and epoch."""
    first: bytes | None = None
    for topic in request.topic_data:
        for part in topic.partition_data:
            records = part.records
            if records is None or len(records) < _HEADER_SIZE or not records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                continue
            producer = bytes(records[_PRODUCER_AT : _PRODUCER_AT + _PRODUCER_BYTES])
            if first is not None and producer != first:
                raise KafkaError(
                    "transactional batches of more than one producer",
                    error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                )
            first = producer


class Appending:
    """One produce request: its batches are appended one by one, and the response filled.

    A batch that is reached after `deadline` is refused.
    """

    __slots__ = (
        "_acks",
        "_name",
        "_refusal",
        "_refused",
        "_rows",
        "_topic",
        "_waiter",
        "context",
        "deadline",
        "now_ms",
        "request",
        "response",
        "services",
        "unverified",
    )

    _name: str
    _topic: Any
    _refusal: ErrorCode
    _rows: list[Row]

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self.context = context
        self.services = context.services
        self.request = request
        self.response: ProduceResponse = new_struct(_RESPONSE)
        self.deadline = math.inf
        self.now_ms = context.services.clock.now_ms()
        self._refused = context.services.refused_batches
        self._acks = request.acks
        self._waiter: DelayedProduce | None = None
        self.unverified: list[UnverifiedBatch] = []

    def begin_topic(self, topic: Any) -> str:
        """The partitions that follow are of this topic; its name, empty if no topic has the id."""
        answered = new_struct(_TOPIC)
        self.response.responses.append(answered)
        self._rows = answered.partition_responses
        self._refusal = _NONE
        context = self.context
        if context.version >= _TOPIC_IDS_FROM:
            answered.topic_id = self._topic = topic.topic_id
            name = self.services.replicas.topic_names.get(topic.topic_id)
            if name is None:
                self._name = ""
                self._refusal = ErrorCode.UNKNOWN_TOPIC_ID
                return ""
        else:
            answered.name = name = self._topic = topic.name
        self._name = name
        if self.services.authorizer is not None and not context.is_allowed(
            _WRITE, Resource(_TOPIC_TYPE, name)
        ):
            self._refusal = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name in _INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
            self._refusal = ErrorCode.INVALID_TOPIC_EXCEPTION
        return self._name

    def append(self, part: Any) -> None:
        """Append the batch of one partition, if it may be."""
        row = new_struct(_ROW)
        row.index = part.index
        row.base_offset = -1
        self._rows.append(row)
        if self._refusal is not _NONE:
            row.error_code = self._refusal
            self._note_refusal(part, row)
            return
        try:
            if monotonic_seconds() > self.deadline:
                raise too_late()
            if not self._refused.is_empty:
                self._refused.check(
                    self.context.connection, (self._topic, part.index), part.records, self.now_ms
                )
            self._append(part, row)
        except KafkaError as error:
            report_error(self.services, self._name, row, error)
            self._note_refusal(part, row)

    def _note_refusal(self, part: Any, row: Row) -> None:
        self._refused.note(
            self.context.connection,
            (self._topic, part.index),
            part.records,
            ErrorCode(row.error_code),
            self.now_ms,
        )

    def _append(self, part: Any, row: Row) -> None:
        acks = self._acks
        if acks < -1 or acks > 1:
            raise KafkaError(f"acks={acks}", error_code=ErrorCode.INVALID_REQUIRED_ACKS)
        partitions: dict[Any, Partition] = self.services.replicas.partitions
        partition = partitions.get((self._name, part.index))
        if partition is None:
            raise UnknownPartition(f"{self._name}-{part.index} is not on this broker")
        records = part.records
        if not records:
            raise KafkaError("no records", error_code=ErrorCode.INVALID_RECORD)
        if len(records) > _ATTRIBUTES_AT:
            attributes = records[_ATTRIBUTES_AT]
            if attributes & _CODEC_MASK == _ZSTD and self.context.version < _ZSTD_FROM:
                raise KafkaError("zstd before version 7", error_code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if attributes & _TRANSACTIONAL and self._begins_transaction(partition, records, row):
                return
        self._append_to(partition, records, row)

    def _append_to(self, partition: Partition, records: Any, row: Row) -> None:
        acks = self._acks
        info = partition.append(records, acks, self.now_ms)
        row.base_offset = info.base_offset
        row.log_append_time_ms = info.log_append_time_ms
        row.log_start_offset = info.log_start_offset
        if acks == _ALL_IN_SYNC:
            if not partition.is_committed(info.last_offset):
                self._wait_for(partition, info.last_offset, row)
        elif acks == 1 and partition.awaits_flush and not partition.is_flushed(info.last_offset):
            self._wait_for(partition, info.last_offset, row)

    def _begins_transaction(self, partition: Partition, records: Any, row: Row) -> bool:
        """Whether the batch must be verified first: its transaction has no batch in this partition yet."""
        if self.request.transactional_id is None:
            raise KafkaError(
                "a transactional batch without a transaction",
                error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            )
        if len(records) < _HEADER_SIZE:
            return False  # refused when it is appended
        raw = raw_bytes(records)
        producer_id = int64_at(raw, _PRODUCER_AT)
        producer_epoch = int16_at(raw, _PRODUCER_AT + 8)
        producers = partition.log.producers
        if producers.has_ongoing_transaction(producer_id, producer_epoch):
            return False
        sequence = int32_at(raw, _PRODUCER_AT + 10)
        self._keep_unverified(partition, records, row, producer_id, producer_epoch, sequence)
        return True

    def _keep_unverified(
        self,
        partition: Partition,
        records: Any,
        row: Row,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
    ) -> None:
        if producer_id < 0:
            raise KafkaError("a transactional batch without a producer", error_code=ErrorCode.INVALID_RECORD)
        partition.require_leader()
        verification = partition.log.producers.begin_verification(
            producer_id,
            producer_epoch,
            sequence,
            self.now_ms,
            begins_at_zero=self.context.version >= _V2_FROM,
        )
        assert verification is not None
        # The buffer of the request is used again before the coordinator has answered.
        kept = memoryview(bytearray(records))
        self.unverified.append(
            UnverifiedBatch(
                partition, kept, row, producer_id, producer_epoch, verification, partition.leader_epoch
            )
        )

    async def append_unverified(self) -> None:
        """Append the batches that begin a transaction, once the coordinator has confirmed them."""
        if not self.unverified:
            return
        transactional_id = self.request.transactional_id or ""
        operation = supported_operation(self.context.version)
        errors = await verify(self.services, transactional_id, operation, self.unverified)
        self.now_ms = self.services.clock.now_ms()
        for batch, error in zip(self.unverified, errors, strict=True):
            try:
                if error is not None:
                    raise error
                self._append_to(batch.partition, batch.records, batch.row)
            except KafkaError as refusal:
                report_error(self.services, batch.partition.topic, batch.row, refusal)

    def _wait_for(self, partition: Partition, last_offset: int, row: Row) -> None:
        if self._waiter is None:
            self._waiter = DelayedProduce(self.context, self.response)
        self._waiter.wait_for(partition, last_offset, partition.led_since, row)

    def answer(self) -> ProduceResponse | None:
        """The response; None with acks=0, or if it waits for replicas or a flush."""
        if self._acks == 0:
            self._answer_nothing()
            return None
        if self._waiter is None:
            return self.response
        services = self.services
        waiting = services.waiting_produces if self._acks == _ALL_IN_SYNC else services.waiting_flushes
        waiting.add(self._waiter, self.request.timeout_ms)
        return None

    def _answer_nothing(self) -> None:
        """With acks=0 there is no response: an error closes the connection."""
        self.context.answer_nothing()
        for topic in self.response.responses:
            for row in topic.partition_responses:
                if row.error_code:
                    self.context.connection.close(f"a produce with acks=0 failed: {row.error_message}")
                    return


class DelayedProduce(CommitWaiter):
    """A produce that waits for the replicas in sync (acks=all), or for a flush."""

    __slots__ = ("_context", "_response")

    def __init__(self, context: RequestContext, response: ProduceResponse) -> None:
        super().__init__(context.connection)
        self._context = context
        self._response = response

    def on_outcome(self, wait: CommitWait, error_code: ErrorCode) -> None:
        """A batch is committed, or its leadership or the time is over."""
        if error_code is _NOT_LEADER:
            services = self._context.services
            topic_partition = wait.partition.topic_partition
            if services.replicas.partitions.get(topic_partition) is not wait.partition:
                error_code = services.why_not_here(*topic_partition)
        if error_code is not _NONE:
            wait.row.error_code = error_code

    def on_complete(self) -> None:
        """Respond, if the client is still connected."""
        if not self._context.connection.is_closed:
            self._context.answer(self._response)


def too_late() -> KafkaError:
    """The error for batches that came behind too much work in the same request."""
    return KafkaError(
        "the batches before it took too long; nothing of it was appended",
        error_code=ErrorCode.REQUEST_TIMED_OUT,
    )


def report_error(services: Services, topic: str, row: Row, error: KafkaError) -> None:
    """Put into the response why a batch was refused."""
    row.error_code = error.error_code
    row.error_message = str(error)
    if isinstance(error, NotLeaderOrFollower):
        row.current_leader.leader_id = error.leader_id
        row.current_leader.leader_epoch = error.leader_epoch
    elif isinstance(error, InvalidRecord):
        row.record_errors = [
            Row.RecordErrors(batch_index=one.batch_index, batch_index_error_message=one.message)
            for one in error.record_errors
        ]
    elif isinstance(error, StorageError):
        services.replicas.disk_failed(TopicPartition(topic, row.index), error)
    elif isinstance(error, UnknownPartition):
        row.error_code = services.why_not_here(topic, row.index)
