"""Log directories: how large the partitions of each broker are, and on which disk."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from odradek.client.admin.base import AdminBase, ResultOrError, by_topic, outcome_of
from odradek.client.broker_errors import check
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

UNKNOWN_BYTES = -1


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """One replica on disk; a future one is being moved here from another directory."""

    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """One log directory; the two sizes of its disk are None if the broker does not return them."""

    path: str
    replicas: dict[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None


LogDirs = dict[str, ResultOrError[LogDirDescription]]


class LogDirAdmin(AdminBase):
    """The calls about log directories."""

    async def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, *, topics: Iterable[str] | None = None
    ) -> dict[int, LogDirs]:
        """The directories of the brokers, or of all; a directory that failed is an error in its place."""
        wanted = None if topics is None else set(topics)
        if broker_ids is None:
            metadata = await self.brokers.retry("connecting", self.brokers.ensure_fresh)
            broker_ids = metadata.nodes
        ids = sorted(set(broker_ids))
        results = await asyncio.gather(*(self._log_dirs_of(broker_id, wanted) for broker_id in ids))
        return dict(zip(ids, results, strict=True))

    async def alter_replica_log_dirs(
        self, paths: Mapping[TopicPartition, Mapping[int, str]]
    ) -> dict[tuple[TopicPartition, int], ResultOrError[None]]:
        """Move replicas to other directories of their brokers; a path for each partition and broker.

        A replica that its broker does not have yet is created there later.
        """
        by_broker: dict[int, dict[TopicPartition, str]] = {}
        for partition, of_brokers in paths.items():
            for broker_id, path in of_brokers.items():
                by_broker.setdefault(broker_id, {})[partition] = path
        await self.brokers.retry("connecting", self.brokers.ensure_fresh)
        results = await asyncio.gather(*(self._move(*item) for item in by_broker.items()))
        return {key: outcome for outcomes in results for key, outcome in outcomes.items()}

    async def _move(
        self, broker_id: int, paths: Mapping[TopicPartition, str]
    ) -> dict[tuple[TopicPartition, int], ResultOrError[None]]:
        dirs: dict[str, list[TopicPartition]] = {}
        for partition, path in paths.items():
            dirs.setdefault(path, []).append(partition)
        row_class = AlterReplicaLogDirsRequest.Dirs
        rows = [
            row_class(
                path=path,
                topics=[
                    row_class.Topics(name=topic, partitions=numbers)
                    for topic, numbers in by_topic(partitions).items()
                ],
            )
            for path, partitions in dirs.items()
        ]
        request = AlterReplicaLogDirsRequest(dirs=rows)
        response = await self.brokers.retry(
            f"moving replicas of broker {broker_id}",
            lambda: self.brokers.send_to_node(broker_id, request, AlterReplicaLogDirsResponse),
        )
        return {
            (TopicPartition(topic.topic_name, row.partition_index), broker_id): outcome_of(
                None, row.error_code
            )
            for topic in response.results
            for row in topic.partitions
        }

    async def _log_dirs_of(self, broker_id: int, topics: set[str] | None) -> LogDirs:
        async def attempt() -> DescribeLogDirsResponse:
            request = DescribeLogDirsRequest(topics=None)
            return await self.brokers.send_to_node(broker_id, request, DescribeLogDirsResponse)

        response = await self.brokers.retry(f"describing the log directories of broker {broker_id}", attempt)
        check(response.error_code)
        return {row.log_dir: outcome_of(_described(row, topics), row.error_code) for row in response.results}


def _described(row: DescribeLogDirsResponse.Results, topics: set[str] | None) -> LogDirDescription:
    replicas = {
        TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
            partition.partition_size, partition.offset_lag, partition.is_future_key
        )
        for topic in row.topics
        if topics is None or topic.name in topics
        for partition in topic.partitions
    }
    return LogDirDescription(
        row.log_dir,
        replicas,
        row.total_bytes if row.total_bytes != UNKNOWN_BYTES else None,
        row.usable_bytes if row.usable_bytes != UNKNOWN_BYTES else None,
    )
