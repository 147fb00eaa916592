"""DeleteRecords, API key 21: make an offset the first one that may be read, on every live replica.

Versions 0-2.  2: flexible. The response waits until the followers have deleted the records as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.waiting.purgatory import Waiter
from odradek.broker.security.acls import Operation, Resource
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteRecordsRequest, DeleteRecordsResponse
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import UnknownPartition

Row = DeleteRecordsResponse.Topics.Partitions
HIGH_WATERMARK = -1


@handles(ApiKey.DELETE_RECORDS, versions=(0, 2))
async def delete_records(
    context: RequestContext, request: DeleteRecordsRequest
) -> DeleteRecordsResponse | None:
    """Each partition has its own result; None while followers are waited for."""
    yielding = CooperativeYield()
    waiting = DelayedDelete(context)
    async for topic in yielding.over(request.topics):
        answered = DeleteRecordsResponse.Topics(name=topic.name)
        waiting.response.topics.append(answered)
        async for asked in yielding.over(topic.partitions):
            row = Row(partition_index=asked.partition_index, low_watermark=-1)
            answered.partitions.append(row)
            partition = _delete(context, topic.name, asked, row)
            if partition is not None:
                waiting.pending.append((partition, row.low_watermark, row))
    if waiting.is_complete():
        return waiting.response
    waiting.wait(request.timeout_ms)
    return None


def _delete(context: RequestContext, topic: str, asked: Any, row: Row) -> Partition | None:
    """Delete here; the partition if its followers have to delete as well."""
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
    else:
        return None if partition.is_sole_replica else partition
    return None


class DelayedDelete(Waiter):
    """A DeleteRecords request. `pending`: partitions with the log start offset that followers must reach."""

    __slots__ = ("_context", "pending", "response")

    def __init__(self, context: RequestContext) -> None:
        super().__init__(context.connection)
        self._context = context
        self.response = DeleteRecordsResponse()
        self.pending: list[tuple[Partition, int, Row]] = []

    def wait(self, timeout_ms: int) -> None:
        """Wait for the followers' next fetches."""
        keys: tuple[Hashable, ...] = tuple(partition.topic_partition for partition, _, _ in self.pending)
        self._context.services.waiting_deletes.add(self, keys, timeout_ms)

    def is_complete(self) -> bool:
        """Drop what every live follower has reached, and what is not led here any more; whether all is."""
        self.pending = [one for one in self.pending if not self._is_settled(*one)]
        return not self.pending

    def _is_settled(self, partition: Partition, offset: int, row: Row) -> bool:
        try:
            partition.require_leader()
        except NotLeaderOrFollower as error:
            row.error_code = error.error_code
            row.low_watermark = -1
            return True
        image = self._context.services.image
        low_watermark = partition.low_watermark(image.brokers.__contains__)
        if low_watermark < offset:
            return False
        row.low_watermark = low_watermark
        return True

    def try_complete(self) -> bool:
        """Respond if the followers have deleted the records."""
        if not self.is_complete():
            return False
        self._context.answer(self.response)
        return True

    def on_timeout(self) -> None:
        """Respond that the followers are not known to have deleted the records."""
        for _, _, row in self.pending:
            row.error_code = ErrorCode.REQUEST_TIMED_OUT
            row.low_watermark = -1
        self._context.answer(self.response)
