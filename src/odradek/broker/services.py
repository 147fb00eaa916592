"""What the handlers work with; put together by the server, one instance per broker."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass

from odradek.broker.fetch_sessions import FetchSessions
from odradek.broker.purgatory import Purgatory
from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import ReplicaManager


@dataclass(slots=True)
class Services:
    """The rooms behind the handlers. Owned by the server, on the loop; `pool` is for what may block."""

    broker_id: int
    cluster_id: str
    clock: Clock
    loop: asyncio.AbstractEventLoop
    pool: Executor
    replicas: ReplicaManager
    fetch_sessions: FetchSessions
    waiting_produces: Purgatory
    waiting_fetches: Purgatory

    def on_progress(self, partition: Partition) -> None:
        """More can be read, or something was committed, or the partition changed hands."""
        self.waiting_fetches.wake(partition.topic_partition)
        self.waiting_produces.wake(partition.topic_partition)

    def why_not_here(self, topic: str, partition: int) -> ErrorCode:
        """The error for a partition that has no replica here."""
        if self.replicas.logs.directory_of(TopicPartition(topic, partition)) is not None:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
