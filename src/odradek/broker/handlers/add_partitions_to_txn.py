"""AddPartitionsToTxn, API key 24: the partitions that a transaction writes to.

Versions 0-5.  2: PRODUCER_FENCED.  3: flexible.  4: for brokers, several transactions, or only verified.
5: TRANSACTION_ABORTABLE.  A leader asks by 4 and 5 before it appends the first batch of a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.transaction_errors import PRODUCER_FENCED_FROM, error_for_version
from odradek.broker.security.acls import Operation, Resource
from odradek.cluster.metadata_answers import INTERNAL_TOPICS
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.transactions.operations import PartitionsRequest
from odradek.transactions.transaction import ProducerIdAndEpoch

_Asked = AddPartitionsToTxnRequest.Transactions
_Result = AddPartitionsToTxnResponse.ResultsByTransaction
_OldResult = AddPartitionsToTxnResponse.ResultsByTopicV3AndBelow

SEVERAL_FROM = 4
CLIENT_VERSION, LEADER_VERSION = 0, 2
"""The transaction.version that is in use: a client adds partitions itself, or leaves it to the leaders."""


@handles(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5))
async def add_partitions_to_txn(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Each partition has its own error code; a transaction is extended by all partitions or by none."""
    if context.version >= SEVERAL_FROM:
        context.authorize(Operation.CLUSTER_ACTION)
        # Side by side: each of them may wait for its partition of __transaction_state.
        results = await asyncio.gather(*(_of_broker(context, asked) for asked in request.transactions))
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    asked = _Asked(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=[
            _Asked.Topics(name=topic.name, partitions=topic.partitions)
            for topic in request.v3_and_below_topics
        ],
    )
    codes = await _of_client(context, asked)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            _OldResult(
                name=name,
                results_by_partition=[
                    _OldResult.ResultsByPartition(partition_index=index, partition_error_code=code)
                    for index, code in rows.items()
                ],
            )
            for name, rows in _by_topic(codes).items()
        ]
    )


async def _of_client(context: RequestContext, asked: _Asked) -> Mapping[TopicPartition, ErrorCode]:
    partitions = _partitions(asked)
    if not context.is_allowed(Operation.WRITE, Resource.transaction(asked.transactional_id)):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused = {one: code for one in partitions if (code := _refusal(context, one)) is not ErrorCode.NONE}
    if refused:
        return {one: refused.get(one, ErrorCode.OPERATION_NOT_ATTEMPTED) for one in partitions}
    return await _add(context, asked, partitions, CLIENT_VERSION)


def _refusal(context: RequestContext, partition: TopicPartition) -> ErrorCode:
    topic = partition.topic
    is_internal = topic in INTERNAL_TOPICS
    if is_internal or not context.is_allowed(Operation.WRITE, Resource.topic(topic)):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if context.services.image.partition(*partition) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


async def _of_broker(context: RequestContext, asked: _Asked) -> _Result:
    partitions = _partitions(asked)
    if asked.verify_only:
        codes = await _verify(context, asked, partitions)
    else:
        codes = await _add(context, asked, partitions, LEADER_VERSION)
    return _Result(
        transactional_id=asked.transactional_id,
        topic_results=[
            _Result.TopicResults(
                name=name,
                results_by_partition=[
                    _Result.TopicResults.ResultsByPartition(partition_index=index, partition_error_code=code)
                    for index, code in rows.items()
                ],
            )
            for name, rows in _by_topic(codes).items()
        ],
    )


async def _add(
    context: RequestContext, asked: _Asked, partitions: Iterable[TopicPartition], client_version: int
) -> Mapping[TopicPartition, ErrorCode]:
    try:
        await context.services.transactions.add_partitions(_membership(asked, client_version))
    except KafkaError as error:
        return dict.fromkeys(partitions, _code(context, error))
    return dict.fromkeys(partitions, ErrorCode.NONE)


async def _verify(
    context: RequestContext, asked: _Asked, partitions: Iterable[TopicPartition]
) -> Mapping[TopicPartition, ErrorCode]:
    try:
        return await context.services.transactions.verify_partitions(_membership(asked, CLIENT_VERSION))
    except KafkaError as error:
        return dict.fromkeys(partitions, _code(context, error))


def _code(context: RequestContext, error: KafkaError) -> ErrorCode:
    return error_for_version(error.error_code, context.version, PRODUCER_FENCED_FROM[context.api_key])


def _membership(asked: _Asked, client_version: int) -> PartitionsRequest:
    producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
    return PartitionsRequest(asked.transactional_id, producer, frozenset(_partitions(asked)), client_version)


def _partitions(asked: _Asked) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partitions]


def _by_topic(codes: Mapping[TopicPartition, ErrorCode]) -> dict[str, dict[int, ErrorCode]]:
    by_topic: dict[str, dict[int, ErrorCode]] = {}
    for (topic, index), code in codes.items():
        by_topic.setdefault(topic, {})[index] = code
    return by_topic
