"""Offsets of partitions: look them up by time or by name, and delete the records before one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from odradek.client.admin.base import AdminBase, ResultOrError, by_topic, outcome_of
from odradek.client.errors import UnsupportedByBroker
from odradek.client.network.connection import BrokerConnection
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

_CONSUMER = -1
TO_HIGH_WATERMARK = -1
"""For `delete_records`: delete everything that consumers can read."""


class OffsetSpec(IntEnum):
    """Offsets that have a name; any other number is a timestamp in milliseconds."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


class IsolationLevel(IntEnum):
    """Whether the latest offset is the last stable one."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """The offset that was found; -1 if no record is so late, or the topic has none."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


# The version from which ListOffsets supports a name.
_FIRST_VERSIONS = {OffsetSpec.MAX_TIMESTAMP: 7, OffsetSpec.EARLIEST_LOCAL: 8, OffsetSpec.LATEST_TIERED: 9}


class OffsetAdmin(AdminBase):
    """The calls about offsets."""

    async def list_offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ResultOrError[OffsetAndTimestamp]]:
        """The offset for each OffsetSpec, or of the first record that is as late as a timestamp."""
        needed = max((_FIRST_VERSIONS.get(OffsetSpec(at), 0) for at in wanted.values() if at < 0), default=0)

        async def call(
            connection: BrokerConnection, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, ResultOrError[OffsetAndTimestamp]]:
            if not connection.versions.serves(ApiKey.LIST_OFFSETS, at_least=needed):
                best = connection.versions.best(ApiKey.LIST_OFFSETS)
                raise UnsupportedByBroker(
                    connection.address, "LIST_OFFSETS", f"{needed} or later for this", f"version {best}"
                )
            request = _list_request(partitions, wanted, isolation_level)
            response = await connection.send_request(request, ListOffsetsResponse)
            return {
                TopicPartition(topic.name, row.partition_index): outcome_of(
                    OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch), row.error_code
                )
                for topic in response.topics
                for row in topic.partitions
            }

        return await self._by_leader("listing offsets", wanted, call, timeout_ms)

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, ResultOrError[int]]:
        """Delete the records before an offset, -1 for all that can be read; the first offset that is left."""

        async def call(
            connection: BrokerConnection, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, ResultOrError[int]]:
            request = DeleteRecordsRequest(timeout_ms=self.config.request_timeout_ms)
            for topic, numbers in by_topic(partitions).items():
                row_class = DeleteRecordsRequest.Topics.Partitions
                rows = [
                    row_class(partition_index=n, offset=before[TopicPartition(topic, n)]) for n in numbers
                ]
                request.topics.append(DeleteRecordsRequest.Topics(name=topic, partitions=rows))
            response = await connection.send_request(request, DeleteRecordsResponse)
            return {
                TopicPartition(topic.name, row.partition_index): outcome_of(row.low_watermark, row.error_code)
                for topic in response.topics
                for row in topic.partitions
            }

        return await self._by_leader("deleting records", before, call, timeout_ms)


def _list_request(
    partitions: list[TopicPartition], wanted: Mapping[TopicPartition, int], isolation_level: IsolationLevel
) -> ListOffsetsRequest:
    request = ListOffsetsRequest(replica_id=_CONSUMER, isolation_level=isolation_level)
    for topic, numbers in by_topic(partitions).items():
        row_class = ListOffsetsRequest.Topics.Partitions
        rows = [row_class(partition_index=n, timestamp=wanted[TopicPartition(topic, n)]) for n in numbers]
        request.topics.append(ListOffsetsRequest.Topics(name=topic, partitions=rows))
    return request
