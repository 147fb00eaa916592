"""OffsetForLeaderEpoch, API key 23: where a leader epoch ended in the leader's log (KIP-101, KIP-320).

Versions 2-4.  2: the current leader epoch.  3: replica id.  4: flexible.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import CLUSTER, Operation, Resource
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from odradek.replication.replica_manager import UnknownPartition

Row = OffsetForLeaderEpochResponse.Topics.Partitions


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4))
async def offset_for_leader_epoch(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """Each partition has its own result."""
    yielding = CooperativeYield()
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderEpochResponse.Topics(
                topic=topic.topic,
                partitions=[
                    _answer(context, topic.topic, asked) async for asked in yielding.over(topic.partitions)
                ],
            )
            async for topic in yielding.over(request.topics)
        ]
    )


def _answer(context: RequestContext, topic: str, asked: Any) -> Row:
    row = Row(partition=asked.partition)
    try:
        if not context.is_allowed(Operation.CLUSTER_ACTION, CLUSTER):
            context.authorize(Operation.DESCRIBE, Resource.topic(topic))
        partition = context.services.replicas.get(topic, asked.partition)
        partition.require_leader(asked.current_leader_epoch)
    except UnknownPartition:
        row.error_code = context.services.why_not_here(topic, asked.partition)
    except KafkaError as error:
        row.error_code = error.error_code
    else:
        end = partition.log.end_offset_for_epoch(asked.leader_epoch)
        row.leader_epoch, row.end_offset = end.epoch, end.end_offset
    return row
