"""TxnOffsetCommit, API key 28: offsets of a group that take effect when a transaction is committed.

Versions 0-5.  2: leader epochs.  3: flexible, the consumer's member id and generation (KIP-447).
4: TRANSACTION_ABORTABLE.  5: transactions v2, the partition of the group is added to the transaction.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.offset_topics import asked_topic
from odradek.broker.requests.transaction_verification import TransactionOperation, ask_coordinator
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.result import ProducerStamp
from odradek.groups.committed import OffsetAndMetadata
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.groups.requests.offset_requests import Commit, TransactionalCommit
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from odradek.transactions.transaction import ProducerIdAndEpoch

Row = TxnOffsetCommitResponse.Topics.Partitions

ADD_FROM, GENERIC_ERROR_FROM = 5, 4
NO_TOPIC_ID = bytes(16)


@handles(ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5))
async def txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Each partition has its own error code; an error of the group or transaction is in every partition."""
    context.authorize(Operation.WRITE, Resource.transaction(request.transactional_id))
    context.authorize(Operation.READ, Resource.group(request.group_id))
    response = TxnOffsetCommitResponse()
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    waiting: dict[TopicPartition, Row] = {}
    now_ms = context.services.clock.now_ms()
    yielding = CooperativeYield()
    async for topic in yielding.over(request.topics):
        known = asked_topic(context, topic.name, NO_TOPIC_ID, Operation.READ)
        rows = []
        async for asked in yielding.over(topic.partitions):
            index = asked.partition_index
            row = Row(partition_index=index, error_code=known.error_for(index))
            rows.append(row)
            if row.error_code == ErrorCode.NONE:
                partition = TopicPartition(topic.name, index)
                waiting[partition] = row
                offsets[partition] = OffsetAndMetadata(
                    offset=asked.committed_offset,
                    leader_epoch=asked.committed_leader_epoch,
                    metadata=asked.committed_metadata or "",
                    commit_timestamp_ms=now_ms,
                    topic_id=known.topic_id,
                )
        response.topics.append(TxnOffsetCommitResponse.Topics(name=topic.name, partitions=rows))
    if offsets:
        await _commit(context, request, offsets, waiting)
    return response


async def _commit(
    context: RequestContext,
    request: TxnOffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    waiting: dict[TopicPartition, Row],
) -> None:
    commit = TransactionalCommit(
        Commit(
            request.group_id, offsets, request.generation_id, request.member_id, request.group_instance_id
        ),
        ProducerStamp(request.producer_id, request.producer_epoch),
    )
    try:
        await _verify(context, request)
        verdicts = await context.services.groups.commit_offsets_in_transaction(commit)
    except KafkaError as error:
        verdicts = dict.fromkeys(offsets, error.error_code)
    for partition, row in waiting.items():
        row.error_code = verdicts[partition]


async def _verify(context: RequestContext, request: TxnOffsetCommitRequest) -> None:
    """Raise unless the partition of the group is part of the transaction."""
    services = context.services
    index = services.groups.partition_of(request.group_id)
    partition = TopicPartition(CONSUMER_OFFSETS, index)
    led = services.replicas.find(*partition)
    if led is None or not led.is_leader:
        raise KafkaError(f"{partition} is led elsewhere", error_code=ErrorCode.NOT_COORDINATOR)
    producers = led.log.producers
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    verification = producers.begin_verification(*producer, 0, services.clock.now_ms())
    if verification is None:
        return
    leader_epoch = led.leader_epoch
    codes = await ask_coordinator(
        services, request.transactional_id, producer, _operation(context.version), [partition]
    )
    code = codes[partition]
    if code is ErrorCode.NOT_ENOUGH_REPLICAS:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if code is not ErrorCode.NONE:
        raise KafkaError(f"{partition}: {code.name}", error_code=code)
    if led.leader_epoch != leader_epoch:
        raise KafkaError(f"{partition} has another leader epoch", error_code=ErrorCode.NOT_COORDINATOR)
    producers = led.log.producers
    if not producers.is_valid(producer.producer_id, verification) and not (
        producers.has_ongoing_transaction(*producer)
    ):
        raise KafkaError("the transaction was ended meanwhile", error_code=ErrorCode.INVALID_TXN_STATE)


def _operation(version: int) -> TransactionOperation:
    if version >= ADD_FROM:
        return TransactionOperation.ADD
    return (
        TransactionOperation.VERIFY
        if version >= GENERIC_ERROR_FROM
        else TransactionOperation.VERIFY_OLD_ERRORS
    )
