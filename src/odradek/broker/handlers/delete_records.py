"""DeleteRecords, API key 21: make an offset the first one that may be read.

Versions 0-2.  2: flexible.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from odradek.replication.replica_manager import UnknownPartition

Row = DeleteRecordsResponse.Topics.Partitions
HIGH_WATERMARK = -1


@handles(ApiKey.DELETE_RECORDS, versions=(0, 2))
async def delete_records(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Each partition has its own result."""
    turns = CooperativeYield()
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsResponse.Topics(
                name=topic.name,
                partitions=[
                    _delete(context, topic.name, asked) async for asked in turns.over(topic.partitions)
                ],
            )
            async for topic in turns.over(request.topics)
        ]
    )


def _delete(context: RequestContext, topic: str, asked: Any) -> Row:
    row = Row(partition_index=asked.partition_index, low_watermark=-1)
    try:
        context.authorize(Operation.DELETE, Resource.topic(topic))
        partition = context.services.replicas.get(topic, asked.partition_index)
        partition.require_leader()
        log = partition.log
        if "delete" not in log.config.cleanup_policy:
            raise KafkaError("the topic is only compacted", error_code=ErrorCode.POLICY_VIOLATION)
        offset = log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        if offset < 0:
            raise KafkaError(f"offset {offset}", error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        row.low_watermark = log.delete_records(offset)
    except UnknownPartition:
        row.error_code = context.services.why_not_here(topic, asked.partition_index)
    except KafkaError as error:
        row.error_code = error.error_code
    return row
