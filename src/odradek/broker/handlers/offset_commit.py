"""OffsetCommit, API key 8: store the offsets of a group.

Versions 2-10, as Kafka 4.  2-4: a retention of its own.  6: leader epochs.  7: static members.  8: flexible.
9: member epochs (KIP-848), no such group.  10: topic ids.
"""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.offset_topics import asked_topic
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.groups.committed import OffsetAndMetadata
from odradek.groups.requests.offset_requests import Commit
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import OffsetCommitRequest, OffsetCommitResponse

Row = OffsetCommitResponse.Topics.Partitions

GROUP_ERRORS_FROM = 9


@handles(ApiKey.OFFSET_COMMIT, versions=(2, 10))
async def offset_commit(context: RequestContext, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Each partition has its own error code; an error of the group is returned for every partition."""
    context.authorize(Operation.READ, Resource.group(request.group_id))
    response = OffsetCommitResponse()
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    waiting: dict[TopicPartition, Row] = {}
    now_ms = context.services.clock.now_ms()
    yielding = CooperativeYield()
    async for topic in yielding.over(request.topics):
        known = asked_topic(context, topic.name, topic.topic_id, Operation.READ)
        rows = []
        async for asked in yielding.over(topic.partitions):
            row = Row(
                partition_index=asked.partition_index, error_code=known.error_for(asked.partition_index)
            )
            rows.append(row)
            if row.error_code == ErrorCode.NONE:
                partition = TopicPartition(known.name, asked.partition_index)
                waiting[partition] = row
                offsets[partition] = _committed(request, asked, known.topic_id, now_ms)
        response.topics.append(
            OffsetCommitResponse.Topics(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        )
    if offsets:
        await _commit(context, request, offsets, waiting)
    return response


def _committed(
    request: OffsetCommitRequest,
    asked: OffsetCommitRequest.Topics.Partitions,
    topic_id: bytes,
    now_ms: int,
) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        offset=asked.committed_offset,
        leader_epoch=asked.committed_leader_epoch,
        metadata=asked.committed_metadata or "",
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=None if request.retention_time_ms < 0 else now_ms + request.retention_time_ms,
        topic_id=topic_id,
    )


async def _commit(
    context: RequestContext,
    request: OffsetCommitRequest,
    offsets: dict[TopicPartition, OffsetAndMetadata],
    waiting: dict[TopicPartition, Row],
) -> None:
    commit = Commit(
        request.group_id,
        offsets,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        knows_group_errors=context.version >= GROUP_ERRORS_FROM,
    )
    try:
        verdicts = await context.services.groups.commit_offsets(commit)
    except KafkaError as error:
        verdicts = dict.fromkeys(offsets, error.error_code)
    for partition, row in waiting.items():
        row.error_code = verdicts[partition]
