"""Whether a new leader has what was read from the one before it (KIP-320).

    leader changes  ->  OffsetForLeaderEpoch: where does the epoch of the last record end in your log?
                    <-  behind the fetch offset: continue
                        before it, or nowhere: the log was truncated

Without this a consumer would continue at an offset that has another record in the new log. What was fetched
ahead and is not confirmed is dropped first, without an error: truncation is reported only for records that
the user has got.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from odradek.client.broker_errors import broker_error
from odradek.client.consumer.positions import NO_EPOCH, PartitionPosition
from odradek.client.errors import BrokerError, ClientError
from odradek.client.metadata import PartitionView
from odradek.client.network.brokers import Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

FIRST_FOR_CONSUMERS = 3
"""Earlier versions are for brokers only."""
UNDEFINED_OFFSET = -1
CONSUMER = -1


class LeaderEpochEnd(NamedTuple):
    """The largest epoch of a log that is not larger than the requested one, and the offset where it ends."""

    leader_epoch: int
    end_offset: int

    @property
    def is_known(self) -> bool:
        """Whether the leader has any such epoch."""
        return self.leader_epoch != NO_EPOCH and self.end_offset != UNDEFINED_OFFSET

    def covers(self, offset: int) -> bool:
        """Whether everything before the offset is in that log."""
        return self.is_known and self.end_offset >= offset


class PendingValidation(NamedTuple):
    """A position that the leader must confirm, as of the request."""

    state: PartitionPosition
    generation: int
    offset: int
    epoch: int
    leader_id: int
    leader_epoch: int

    @property
    def is_current(self) -> bool:
        """Whether the position is still the requested one."""
        return (self.state.generation, self.state.fetch_offset) == (self.generation, self.offset)


class Validation:
    """Validates the positions in `states` with the leaders. Owned by the fetcher, on its loop."""

    def __init__(
        self,
        brokers: Brokers,
        states: Mapping[TopicPartition, PartitionPosition],
        *,
        truncated: Callable[[PartitionPosition, LeaderEpochEnd], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._brokers = brokers
        self._states = states
        self._truncated = truncated
        self._fail = fail

    @staticmethod
    def is_due(state: PartitionPosition, view: PartitionView) -> bool:
        """Whether a partition may not be fetched before `run` has validated its position."""
        if state.validated_epoch == view.leader_epoch:
            return False
        if NO_EPOCH in (state.fetch_epoch, view.leader_epoch):
            state.validated_epoch = view.leader_epoch
            return False
        return True

    async def run(self) -> None:
        """Validate every partition for which it is due, and apply the responses."""
        by_node: dict[int, list[PendingValidation]] = {}
        for validation in self._unvalidated(time.monotonic() * 1000):
            by_node.setdefault(validation.leader_id, []).append(validation)
        settled = await asyncio.gather(*(self._validate(*item) for item in by_node.items()))
        if not all(settled):
            self._brokers.metadata.mark_stale()
            await asyncio.sleep(self._brokers.config.retry_backoff_ms / 1000)

    def _unvalidated(self, now_ms: float) -> Iterator[PendingValidation]:
        for partition, state in self._states.items():
            view, offset = self._brokers.metadata.leader(partition), state.fetch_offset
            if view is None or offset is None or state.not_before_ms > now_ms:
                continue
            if self.is_due(state, view):
                yield PendingValidation(
                    state, state.generation, offset, state.fetch_epoch, view.leader_id, view.leader_epoch
                )

    async def _validate(self, node_id: int, pending: list[PendingValidation]) -> bool:
        """Send a request to one leader; returns whether it confirmed all partitions."""
        try:
            connection = await self._brokers.connection(node_id)
            if not connection.versions.serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, FIRST_FOR_CONSUMERS):
                for validation in pending:
                    validation.state.validated_epoch = validation.leader_epoch
                return True
            response = await connection.send_request(_request(pending), OffsetForLeaderEpochResponse)
        except (ClientError, BrokerError):
            return False
        responses = {
            TopicPartition(topic.topic, row.partition): row
            for topic in response.topics
            for row in topic.partitions
        }
        settled = [
            self._settle(validation, responses.get(validation.state.topic_partition))
            for validation in pending
        ]
        return all(settled)

    def _settle(
        self, validation: PendingValidation, row: OffsetForLeaderEpochResponse.Topics.Partitions | None
    ) -> bool:
        state = validation.state
        if row is None or not validation.is_current:
            return row is not None
        if row.error_code != ErrorCode.NONE:
            error = broker_error(row.error_code, str(state.topic_partition))
            if not error.is_retriable:
                self._fail(error)
            return False
        end = LeaderEpochEnd(row.leader_epoch, row.end_offset)
        if end.covers(validation.offset):
            state.validated_epoch = validation.leader_epoch
        elif state.position is not None and state.position < validation.offset:
            state.seek(state.position, state.leader_epoch)
        else:
            self._truncated(state, end)
        return True


def _request(pending: list[PendingValidation]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, OffsetForLeaderEpochRequest.Topics] = {}
    for validation in pending:
        name, partition = validation.state.topic_partition
        row = OffsetForLeaderEpochRequest.Topics.Partitions(
            partition=partition, current_leader_epoch=validation.leader_epoch, leader_epoch=validation.epoch
        )
        topics.setdefault(name, OffsetForLeaderEpochRequest.Topics(topic=name)).partitions.append(row)
    return OffsetForLeaderEpochRequest(replica_id=CONSUMER, topics=list(topics.values()))
