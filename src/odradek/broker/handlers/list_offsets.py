"""ListOffsets, API key 2: offsets by time, and the special ones.

Versions 1-11.  2: isolation.  4: leader epochs.  6: flexible.  7: -3, the youngest record.  8: -4, the
earliest local offset.  9: -5, the latest tiered offset.  11: -6, the earliest offset not yet tiered.
A follower gets the log end as the latest offset. A leader whose high watermark has not reached its epoch yet
has no latest offset for consumers (KIP-207): it could be before one that the previous leader has returned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.log.partition.timestamps import TimestampedOffset
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ListOffsetsRequest, ListOffsetsResponse
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import UnknownPartition

Row = ListOffsetsResponse.Topics.Partitions

READ_COMMITTED = 1
UNKNOWN = -1
LATEST = -1
OFFSET_NOT_AVAILABLE_FROM = 5

# The version that brought each timestamp that is none; before it a client cannot mean it.
SPECIAL_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
NEVER = 2**15


@handles(ApiKey.LIST_OFFSETS, versions=(1, 11))
async def list_offsets(context: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Each partition has its own result; a lookup by time may read files, so it runs in the pool."""
    yielding = CooperativeYield()
    topics = []
    async for topic in yielding.over(request.topics):
        rows = [
            await _answer(context, request, topic.name, asked)
            async for asked in yielding.over(topic.partitions)
        ]
        topics.append(ListOffsetsResponse.Topics(name=topic.name, partitions=rows))
    return ListOffsetsResponse(topics=topics)


async def _answer(context: RequestContext, request: ListOffsetsRequest, topic: str, asked: Any) -> Row:
    row = Row(partition_index=asked.partition_index)
    try:
        context.authorize(Operation.DESCRIBE, Resource.topic(topic))
        partition = context.services.replicas.get(topic, asked.partition_index)
        partition.require_leader(asked.current_leader_epoch)
        if request.replica_id >= 0 and asked.timestamp == LATEST:
            found: TimestampedOffset | None = TimestampedOffset(
                UNKNOWN, partition.log.log_end_offset, partition.state.leader_epoch
            )
        else:
            found = await _find(context, partition, asked.timestamp, request.isolation_level)
    except UnknownPartition:
        row.error_code = context.services.why_not_here(topic, asked.partition_index)
    except KafkaError as error:
        row.error_code = error.error_code
    else:
        if found is not None:
            row.offset, row.timestamp, row.leader_epoch = found.offset, found.timestamp_ms, found.leader_epoch
    return row


async def _find(
    context: RequestContext, partition: Partition, timestamp_ms: int, isolation: int
) -> TimestampedOffset | None:
    log = partition.log
    if timestamp_ms < 0 and context.version < SPECIAL_SINCE.get(timestamp_ms, NEVER):
        raise KafkaError(f"timestamp {timestamp_ms}", error_code=ErrorCode.UNSUPPORTED_VERSION)
    end = log.last_stable_offset if isolation == READ_COMMITTED else log.high_watermark
    match timestamp_ms:
        case -1:
            _require_committed_epoch(context, partition)
            return TimestampedOffset(UNKNOWN, end, partition.state.leader_epoch)
        case -2 | -4:
            start = log.log_start_offset
            return TimestampedOffset(UNKNOWN, start, _epoch_at(partition, start))
        case -5 | -6:
            # Nothing is ever tiered here.
            return TimestampedOffset(UNKNOWN, UNKNOWN, UNKNOWN)
        case -3:
            find: Callable[[], TimestampedOffset | None] = log.offset_of_max_timestamp
        case _:
            find = partial(log.offset_for_timestamp, timestamp_ms)
    found = await context.services.loop.run_in_executor(context.services.pool, find)
    if found is None or found.offset >= end:
        _require_committed_epoch(context, partition)
        return None
    return found


def _require_committed_epoch(context: RequestContext, partition: Partition) -> None:
    """Raise if the high watermark is still below the start of this leader's epoch."""
    if partition.log.high_watermark < partition.epoch_start_offset:
        raise KafkaError(
            "the high watermark has not reached the leader epoch yet",
            error_code=ErrorCode.OFFSET_NOT_AVAILABLE
            if context.version >= OFFSET_NOT_AVAILABLE_FROM
            else ErrorCode.LEADER_NOT_AVAILABLE,
        )


def _epoch_at(partition: Partition, offset: int) -> int:
    """The leader epoch that wrote an offset; -1 if it is not known."""
    epoch = UNKNOWN
    for entry in partition.log.epochs:
        if entry.start_offset > offset:
            break
        epoch = entry.epoch
    return epoch
