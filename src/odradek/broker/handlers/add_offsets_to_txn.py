"""AddOffsetsToTxn, API key 25: the offsets of a group become part of a transaction.

Versions 0-4.  2: PRODUCER_FENCED.  3: flexible.  4: TRANSACTION_ABORTABLE.  With transactions v2 clients
leave it out: TxnOffsetCommit adds the partition.
"""

from __future__ import annotations

from odradek.broker.coordinators.internal_topics import consumer_offsets, partition_of
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.transaction_errors import PRODUCER_FENCED_FROM, error_for_version
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.partitioning import partition_for
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.transactions.operations import PartitionsRequest
from odradek.transactions.transaction import ProducerIdAndEpoch


@handles(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4))
async def add_offsets_to_txn(
    context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Add the partition of `__consumer_offsets` that the group belongs to."""
    context.authorize(Operation.WRITE, Resource.transaction(request.transactional_id))
    context.authorize(Operation.READ, Resource.group(request.group_id))
    services = context.services
    await partition_of(services, consumer_offsets(services.config()), request.group_id)
    count = len(services.image.topics[CONSUMER_OFFSETS].partitions)
    partition = TopicPartition(CONSUMER_OFFSETS, partition_for(request.group_id, count))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    code = ErrorCode.NONE
    try:
        await services.transactions.add_partitions(
            PartitionsRequest(request.transactional_id, producer, frozenset({partition}))
        )
    except KafkaError as error:
        code = error_for_version(error.error_code, context.version, PRODUCER_FENCED_FROM[context.api_key])
    return AddOffsetsToTxnResponse(error_code=code)
