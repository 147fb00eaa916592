"""OffsetFetch, API key 9: the committed offsets of groups.

Versions 1-10, as Kafka 4.  2: null means all partitions; an error of the group.  5: leader epochs.
6: flexible.  7: only stable offsets.  8: several groups.  9: member epochs (KIP-848).  10: topic ids.
"""

from __future__ import annotations

from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.offset_topics import AskedTopic, asked_topic
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.groups.committed import INVALID_OFFSET, NO_LEADER_EPOCH
from odradek.groups.requests.offset_requests import FetchedOffset
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

GroupRow = OffsetFetchResponse.Groups
TopicRow = OffsetFetchResponse.Groups.Topics
Row = OffsetFetchResponse.Groups.Topics.Partitions

GROUP_ERROR_FROM = 2
SEVERAL_GROUPS_FROM = 8
TOPIC_IDS_FROM = 10
NO_TOPIC_ID = bytes(16)


@handles(ApiKey.OFFSET_FETCH, versions=(1, 10))
async def offset_fetch(context: RequestContext, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Each group has its own result."""
    yielding = CooperativeYield()
    if context.version >= SEVERAL_GROUPS_FROM:
        rows = [
            await _fetch(context, asked, request.require_stable, yielding)
            async for asked in yielding.over(request.groups)
        ]
        return OffsetFetchResponse(groups=rows)
    asked = OffsetFetchRequest.Groups(group_id=request.group_id, topics=_topics_of(request))
    return await _as_single(context, await _fetch(context, asked, request.require_stable, yielding), asked)


def _topics_of(request: OffsetFetchRequest) -> list[OffsetFetchRequest.Groups.Topics] | None:
    if request.topics is None:
        return None
    return [
        OffsetFetchRequest.Groups.Topics(name=topic.name, partition_indexes=topic.partition_indexes)
        for topic in request.topics
    ]


async def _fetch(
    context: RequestContext,
    asked: OffsetFetchRequest.Groups,
    require_stable: bool,
    yielding: CooperativeYield,
) -> GroupRow:
    row = GroupRow(group_id=asked.group_id)
    topics, partitions = None, None
    if asked.topics is not None:
        topics = [
            (asked_topic(context, topic.name, topic.topic_id, Operation.DESCRIBE), topic.partition_indexes)
            async for topic in yielding.over(asked.topics)
        ]
        partitions = [
            TopicPartition(topic.name, index)
            async for topic, indexes in yielding.over(topics)
            for index in indexes
        ]
    try:
        context.authorize(Operation.DESCRIBE, Resource.group(asked.group_id))
        found = await context.services.groups.fetch_offsets(
            asked.group_id,
            partitions,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
            require_stable=require_stable,
        )
    except KafkaError as error:
        row.error_code = error.error_code
        return row
    if topics is None:
        row.topics = _all_found(context, found)
    else:
        row.topics = [
            await _asked_for(topic, indexes, found, yielding)
            async for topic, indexes in yielding.over(topics)
        ]
    return row


def _all_found(context: RequestContext, found: dict[TopicPartition, FetchedOffset]) -> list[TopicRow]:
    by_topic: dict[str, list[Row]] = {}
    for partition, fetched in found.items():
        by_topic.setdefault(partition.topic, []).append(_row(partition.partition, fetched))
    rows = []
    for name, partitions in by_topic.items():
        topic = asked_topic(context, name, NO_TOPIC_ID, Operation.DESCRIBE)
        if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            continue
        topic_id = topic.topic_id
        # A deleted topic has no id.
        if context.version < TOPIC_IDS_FROM or topic_id != NO_TOPIC_ID:
            rows.append(TopicRow(name=name, topic_id=topic_id, partitions=partitions))
    return rows


async def _asked_for(
    topic: AskedTopic,
    indexes: list[int],
    found: dict[TopicPartition, FetchedOffset],
    yielding: CooperativeYield,
) -> TopicRow:
    # A name need not exist: offsets outlive their topic. An unknown id has no offsets.
    is_refused = topic.error in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partitions = [
        _refused(index, topic.error) if is_refused else _row(index, found[TopicPartition(topic.name, index)])
        async for index in yielding.over(indexes)
    ]
    return TopicRow(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _row(index: int, fetched: FetchedOffset) -> Row:
    committed = fetched.committed
    return Row(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=fetched.error_code,
    )


def _refused(index: int, error_code: int) -> Row:
    return Row(
        partition_index=index,
        committed_offset=INVALID_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error_code,
    )


async def _as_single(
    context: RequestContext, row: GroupRow, asked: OffsetFetchRequest.Groups
) -> OffsetFetchResponse:
    """The response for one group before version 8; version 1 has the error in every partition."""
    topics: list[Any] = row.topics
    if row.error_code and context.version < GROUP_ERROR_FROM:
        topics = [
            TopicRow(
                name=one.name, partitions=[_refused(index, row.error_code) for index in one.partition_indexes]
            )
            for one in asked.topics or []
        ]
    response = OffsetFetchResponse(error_code=row.error_code)
    yielding = CooperativeYield()
    response.topics = [
        OffsetFetchResponse.Topics(
            name=topic.name, partitions=[_old_row(one) async for one in yielding.over(topic.partitions)]
        )
        async for topic in yielding.over(topics)
    ]
    return response


def _old_row(row: Row) -> OffsetFetchResponse.Topics.Partitions:
    return OffsetFetchResponse.Topics.Partitions(
        partition_index=row.partition_index,
        committed_offset=row.committed_offset,
        committed_leader_epoch=row.committed_leader_epoch,
        metadata=row.metadata,
        error_code=row.error_code,
    )
