"""Requests offsets from the leaders of partitions: the first, the last, the first at or after a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from odradek.client.broker_errors import broker_error, check
from odradek.client.errors import BrokerError, is_retriable
from odradek.client.metadata import Metadata
from odradek.client.network.brokers import STALE_METADATA_ERRORS, Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import ListOffsetsRequest, ListOffsetsResponse


class OffsetAndTimestamp(NamedTuple):
    """An offset returned by a leader, with the timestamp of its record (-1: not requested)."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


async def list_offsets(
    brokers: Brokers,
    times: Mapping[TopicPartition, int],
    *,
    reads_committed: bool = False,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """The offset of each partition at a time in ms, or at the end (-1) or the beginning (-2)."""
    found: dict[TopicPartition, OffsetAndTimestamp] = {}

    async def attempt() -> None:
        await brokers.ensure_fresh()
        by_node: dict[int, list[TopicPartition]] = {}
        for partition in times.keys() - found.keys():
            view = brokers.metadata.leader(partition)
            if view is None:
                brokers.metadata.mark_stale()
                raise _why_without_leader(brokers.metadata, partition)
            by_node.setdefault(view.leader_id, []).append(partition)
        asked = (
            _request_offsets(brokers, node_id, group, times, reads_committed, found)
            for node_id, group in by_node.items()
        )
        problems = [problem for problem in await asyncio.gather(*asked) if problem is not None]
        if problems:
            raise next((one for one in problems if not is_retriable(one)), problems[0])

    await brokers.retry("looking up offsets", attempt, timeout_ms=timeout_ms)
    return found


def _why_without_leader(metadata: Metadata, partition: TopicPartition) -> BrokerError:
    topic = metadata.topics.get(partition.topic)
    if topic is not None and partition.partition not in topic.partitions:
        count = len(topic.partitions)
        problem = f"topic {partition.topic} has {count} partitions, and no {partition.partition}"
        return broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, problem)
    return broker_error(metadata.errors.get(partition.topic, ErrorCode.LEADER_NOT_AVAILABLE), str(partition))


async def _request_offsets(
    brokers: Brokers,
    node_id: int,
    partitions: list[TopicPartition],
    times: Mapping[TopicPartition, int],
    reads_committed: bool,
    found: dict[TopicPartition, OffsetAndTimestamp],
) -> BrokerError | None:
    """Send a request to one leader; offsets go to `found`, one of its errors is returned."""
    topics: dict[str, ListOffsetsRequest.Topics] = {}
    for partition in partitions:
        view = brokers.metadata.leader(partition)
        row = ListOffsetsRequest.Topics.Partitions(
            partition_index=partition.partition,
            current_leader_epoch=view.leader_epoch if view is not None else -1,
            timestamp=times[partition],
        )
        topics.setdefault(partition.topic, ListOffsetsRequest.Topics(name=partition.topic)).partitions.append(
            row
        )
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(reads_committed), topics=list(topics.values())
    )
    response = await brokers.send_to_node(node_id, request, ListOffsetsResponse)
    problem: BrokerError | None = None
    for topic in response.topics:
        for result in topic.partitions:
            partition = TopicPartition(topic.name, result.partition_index)
            try:
                check(result.error_code, str(partition))
            except BrokerError as error:
                problem = error
                if result.error_code in STALE_METADATA_ERRORS:
                    brokers.metadata.mark_stale()
                continue
            found[partition] = OffsetAndTimestamp(result.offset, result.timestamp, result.leader_epoch)
    return problem
