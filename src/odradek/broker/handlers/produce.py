"""Produce, API key 0: append batches to partitions that this broker leads.

Versions 3-13 (0-2 are advertised, SPEC K1, and refused).  5: log start offset.  7: zstd.  8: errors of single
records.  9: flexible.  10: the current leader in the answer.  13: topic ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import STEPS_PER_YIELD, CooperativeYield
from odradek.broker.requests.dispatch import Answer, handles
from odradek.broker.requests.services import Services
from odradek.cluster.metadata_answers import INTERNAL_TOPICS
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.errors import StorageError
from odradek.log.partition.log_appender import AppendInfo
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.protocol.produce_frames import TOPIC_IDS_FROM
from odradek.records.batch import ATTRIBUTES_POSITION, CODEC_MASK, TRANSACTIONAL_FLAG
from odradek.records.compression import Codec
from odradek.records.errors import InvalidRecord
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import UnknownPartition

Row = ProduceResponse.Responses.PartitionResponses
LEGAL_ACKS = (-1, 0, 1)
# Of a request for very many partitions.
BATCHES_PER_TURN = 100
# How long any other request may keep everybody waiting. Only hundreds of batches that decompress to 64 times
# their size come near it; what is left of them is refused with an error on which clients try again.
MAX_SECONDS = 0.5
ZSTD_FROM = 7
# The client id that Kafka lets write into internal topics.
ADMIN_CLIENT_ID = "__admin_client"
LOW_ATTRIBUTES_POSITION = ATTRIBUTES_POSITION + 1


Appended = list[tuple[Partition, int, Row]]
"""Partition and last offset of each batch that was appended, and its row of the answer."""


@handles(ApiKey.PRODUCE, versions=(3, 13))
def produce(context: RequestContext, request: ProduceRequest) -> Answer:
    """Append what can be appended; each partition has its own verdict."""
    if sum(len(topic.partition_data) for topic in request.topic_data) > STEPS_PER_YIELD:
        _keep_records(request)
        # What the client sends behind it must not overtake it.
        context.connection.pause()
        return _produce_in_turns(context, request)
    response, appended = ProduceResponse(), Appended()
    deadline = context.services.loop.time() + MAX_SECONDS
    for _ in _append_all(context, request, response, appended, deadline):
        pass
    return _answer(context, request, response, appended)


async def _produce_in_turns(context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """The same for very many partitions, while others are served."""
    response, appended = ProduceResponse(), Appended()
    try:
        steps = _append_all(context, request, response, appended, deadline=math.inf)
        async for _ in CooperativeYield(BATCHES_PER_TURN).over(steps):
            pass
    finally:
        context.connection.resume()
    return _answer(context, request, response, appended)


def _keep_records(request: ProduceRequest) -> None:
    """Copy them: the buffer that they came in is used again before they are all appended."""
    for topic in request.topic_data:
        for part in topic.partition_data:
            if part.records:
                part.records = memoryview(bytearray(part.records))


def _answer(
    context: RequestContext, request: ProduceRequest, response: ProduceResponse, appended: Appended
) -> ProduceResponse | None:
    """The answer, if it is time for it."""
    if request.acks == 0:
        _answer_silently(context, response)
        return None
    if not all(partition.may_acknowledge(last, request.acks) for partition, last, _ in appended):
        _park(context, request, response, appended)
        return None
    return response


def _append_all(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    appended: Appended,
    deadline: float,
) -> Iterator[None]:
    """Fill the response, one partition at a time."""
    for topic in request.topic_data:
        name, refusal = _name(context, topic)
        told = ProduceResponse.Responses(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(told)
        for part in topic.partition_data:
            row = Row(index=part.index, error_code=refusal, base_offset=-1)
            told.partition_responses.append(row)
            if context.services.loop.time() > deadline:
                tell_error(context.services, name, row, too_late())
            elif refusal is ErrorCode.NONE:
                _append(context, request, name, part, row, appended)
            yield


def _name(context: RequestContext, topic: Any) -> tuple[str, ErrorCode]:
    """A topic's name, and why nobody may write to it."""
    name = topic.name
    if context.version >= TOPIC_IDS_FROM:
        name = context.services.replicas.topic_name(topic.topic_id)
        if name is None:
            return "", ErrorCode.UNKNOWN_TOPIC_ID
    if name in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        return name, ErrorCode.INVALID_TOPIC_EXCEPTION
    return name, ErrorCode.NONE


def _append(
    context: RequestContext,
    request: ProduceRequest,
    topic: str,
    part: Any,
    row: Row,
    appended: Appended,
) -> None:
    services = context.services
    acks = request.acks
    try:
        if acks not in LEGAL_ACKS:
            raise KafkaError(f"acks={acks}", error_code=ErrorCode.INVALID_REQUIRED_ACKS)
        partition = services.replicas.get(topic, part.index)
        if not part.records:
            raise KafkaError("no records", error_code=ErrorCode.INVALID_RECORD)
        _check_attributes(context, request, part.records)
        info = partition.append(part.records, required_acks=acks, now_ms=services.clock.now_ms())
    except KafkaError as error:
        tell_error(services, topic, row, error)
        return
    tell_place(row, info)
    appended.append((partition, info.last_offset, row))


def _check_attributes(context: RequestContext, request: ProduceRequest, records: Any) -> None:
    """Refuse what this version cannot carry, and transactions: nobody here could end one."""
    if len(records) <= LOW_ATTRIBUTES_POSITION:
        return
    attributes = records[LOW_ATTRIBUTES_POSITION]
    if attributes & TRANSACTIONAL_FLAG:
        is_anonymous = request.transactional_id is None
        raise KafkaError(
            "a transactional batch without a transaction",
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            if is_anonymous
            else ErrorCode.INVALID_TXN_STATE,
        )
    if context.version < ZSTD_FROM and attributes & CODEC_MASK == Codec.ZSTD:
        raise KafkaError("zstd before version 7", error_code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


def too_late() -> KafkaError:
    """The error for batches that came behind too much work in the same request."""
    return KafkaError(
        "the batches before it took too long; nothing of it was appended",
        error_code=ErrorCode.REQUEST_TIMED_OUT,
    )


def tell_place(row: Row, info: AppendInfo) -> None:
    """Write into the answer where a batch went."""
    row.base_offset = info.base_offset
    row.log_append_time_ms = info.log_append_time_ms
    row.log_start_offset = info.log_start_offset


def tell_error(services: Services, topic: str, row: Row, error: KafkaError) -> None:
    """Write into the answer why a batch was refused."""
    row.error_code = error.error_code
    row.error_message = str(error)
    if isinstance(error, NotLeaderOrFollower):
        row.current_leader.leader_id = error.leader_id
        row.current_leader.leader_epoch = error.leader_epoch
    elif isinstance(error, InvalidRecord) and error.batch_index >= 0:
        row.record_errors = [
            Row.RecordErrors(batch_index=error.batch_index, batch_index_error_message=str(error))
        ]
    elif isinstance(error, StorageError):
        services.replicas.disk_failed(TopicPartition(topic, row.index), error)
    elif isinstance(error, UnknownPartition):
        row.error_code = services.why_not_here(topic, row.index)


def _answer_silently(context: RequestContext, response: ProduceResponse) -> None:
    """With acks=0 nobody reads an answer; an error can only be told by closing the connection."""
    context.answer_nothing()
    failed = [row for topic in response.responses for row in topic.partition_responses if row.error_code]
    if failed:
        context.connection.close(f"a produce with acks=0 failed: {failed[0].error_message}")


def _park(
    context: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    appended: Appended,
) -> None:
    """Wait until every batch may be acknowledged; those that are not in time are told so."""
    services, acks = context.services, request.acks

    def try_complete() -> bool:
        for partition, last, row in appended:
            if partition.may_acknowledge(last, acks):
                continue
            if services.replicas.partitions.get(partition.topic_partition) is not partition:
                row.error_code = services.why_not_here(*partition.topic_partition)
            elif not partition.is_leader:
                row.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not all(
            row.error_code or partition.may_acknowledge(last, acks) for partition, last, row in appended
        ):
            return False
        context.answer(response)
        return True

    def give_up() -> None:
        for partition, last_offset, row in appended:
            if not partition.may_acknowledge(last_offset, acks) and not row.error_code:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT
        context.answer(response)

    services.waiting_produces.park(
        (partition.topic_partition for partition, _, _ in appended),
        try_complete=try_complete,
        timeout_ms=request.timeout_ms,
        on_timeout=give_up,
        connection=context.connection,
    )
