"""DescribeProducers, API key 61: who writes to a partition with sequences, and which transactions are open.

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.errors import KafkaError
from odradek.log.producers.producer_states import ProducerEntry
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from odradek.replication.replica_manager import UnknownPartition

Topic = DescribeProducersResponse.Topics
Row = Topic.Partitions


@handles(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0))
async def describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse:
    """Each partition has its own result; only its leader has one."""
    yielding = CooperativeYield()
    return DescribeProducersResponse(
        topics=[
            Topic(
                name=topic.name,
                partitions=[
                    _describe(context, topic.name, index)
                    async for index in yielding.over(topic.partition_indexes)
                ],
            )
            async for topic in yielding.over(request.topics)
        ]
    )


def _describe(context: RequestContext, topic: str, index: int) -> Row:
    row = Row(partition_index=index)
    try:
        context.authorize(Operation.READ, Resource.topic(topic))
        partition = context.services.replicas.get(topic, index)
        partition.require_leader()
        row.active_producers = [_producer(entry) for entry in partition.log.producers.entries.values()]
    except UnknownPartition:
        row.error_code = context.services.why_not_here(topic, index)
    except KafkaError as error:
        row.error_code, row.error_message = error.error_code, str(error)
    return row


def _producer(entry: ProducerEntry) -> Row.ActiveProducers:
    return Row.ActiveProducers(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.current_txn_first_offset,
    )
