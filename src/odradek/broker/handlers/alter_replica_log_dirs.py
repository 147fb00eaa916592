"""AlterReplicaLogDirs, API key 34: move replicas to another log directory of this broker.

Versions 0-2.  2: flexible.  Returns when the moves have started; DescribeLogDirs shows their progress.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Result = AlterReplicaLogDirsResponse.Results
Row = Result.Partitions


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(0, 2))
async def alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """Each partition has its own result; for a partition named twice the last directory counts."""
    wanted = {
        TopicPartition(topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    results: dict[str, Result] = {}
    async for topic_partition, path in CooperativeYield().over(wanted.items()):
        topic, index = topic_partition
        row = Row(partition_index=index, error_code=await _order(context, topic_partition, path))
        results.setdefault(topic, Result(topic_name=topic)).partitions.append(row)
    return AlterReplicaLogDirsResponse(results=list(results.values()))


async def _order(context: RequestContext, topic_partition: TopicPartition, path: str) -> ErrorCode:
    services = context.services
    try:
        await services.moves.order(topic_partition, path)
    except KafkaError as error:
        is_absent = error.error_code is ErrorCode.REPLICA_NOT_AVAILABLE
        reason = services.why_not_here(*topic_partition) if is_absent else error.error_code
        # A partition that is elsewhere keeps the error that this API had before there was a better one.
        return ErrorCode.REPLICA_NOT_AVAILABLE if reason is ErrorCode.NOT_LEADER_OR_FOLLOWER else reason
    return ErrorCode.NONE
