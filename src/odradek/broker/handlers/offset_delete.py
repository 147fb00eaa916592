"""OffsetDelete, API key 47: delete a group's offsets of topics that it does not read.

Version 0.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.offset_topics import NO_TOPIC_ID, asked_topic
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse

Row = OffsetDeleteResponse.Topics.Partitions


@handles(ApiKey.OFFSET_DELETE, versions=(0, 0))
async def offset_delete(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Each partition has its own result; an error of the group is at the top."""
    context.authorize(Operation.DELETE, Resource.group(request.group_id))
    response = OffsetDeleteResponse()
    waiting: dict[TopicPartition, Row] = {}
    yielding = CooperativeYield()
    async for topic in yielding.over(request.topics):
        known = asked_topic(context, topic.name, NO_TOPIC_ID, Operation.READ)
        rows = []
        async for asked in yielding.over(topic.partitions):
            row = Row(
                partition_index=asked.partition_index, error_code=known.error_for(asked.partition_index)
            )
            rows.append(row)
            if row.error_code == ErrorCode.NONE:
                waiting[TopicPartition(topic.name, asked.partition_index)] = row
        response.topics.append(OffsetDeleteResponse.Topics(name=topic.name, partitions=rows))
    if waiting:
        errors = await context.services.groups.delete_offsets(request.group_id, list(waiting))
        for partition, row in waiting.items():
            row.error_code = errors[partition]
    return response
