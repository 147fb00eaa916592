"""Every partition that has a replica on this broker: found by name or by id, made and dropped as told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from uuid import UUID

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.errors import StorageError
from odradek.log.manager import LogManager
from odradek.replication.partition import Partition, PartitionState

NO_TOPIC_ID = bytes(16)


class UnknownPartition(KafkaError):
    """No replica of this partition is here."""

    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class ReplicaManager:
    """The partitions of this broker. Owned by the broker, on the loop."""

    def __init__(self, broker_id: int, logs: LogManager, on_progress: Callable[[Partition], None]) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self._on_progress = on_progress
        self._partitions: dict[TopicPartition, Partition] = {}
        self._topic_names: dict[bytes, str] = {}

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    def __len__(self) -> int:
        return len(self._partitions)

    def find(self, topic: str, partition: int) -> Partition | None:
        """The partition, if it has a replica here."""
        # A plain tuple hashes and compares like a TopicPartition and is cheaper to make.
        return self._partitions.get((topic, partition))  # type: ignore[call-overload, no-any-return]

    def get(self, topic: str, partition: int) -> Partition:
        """The partition; UnknownPartition if it has no replica here."""
        found = self.find(topic, partition)
        if found is None:
            raise UnknownPartition(f"{topic}-{partition} is not on this broker")
        return found

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic that has a partition here."""
        return self._topic_names.get(topic_id)

    def host(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        state: PartitionState,
        config: LogConfig,
        *,
        now_ms: int,
    ) -> Partition:
        """Have a replica of this partition in this state; its log is made if there is none. May block."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            known_id = UUID(bytes=topic_id) if topic_id != NO_TOPIC_ID else None
            log = self.logs.get_or_create(topic_partition, config, now_ms=now_ms, topic_id=known_id)
            partition = Partition(topic_partition, topic_id, self.broker_id, log, self._on_progress)
            self._partitions[topic_partition] = partition
            self._topic_names[topic_id] = topic_partition.topic
        partition.become(state)
        return partition

    def drop(self, topic_partition: TopicPartition, *, delete_log: bool, now_ms: int) -> None:
        """Have no replica of it any more; with `delete_log` its files go too."""
        partition = self._partitions.pop(topic_partition, None)
        if partition is not None:
            if not any(other.topic_id == partition.topic_id for other in self._partitions.values()):
                self._topic_names.pop(partition.topic_id, None)
            self._on_progress(partition)
        if delete_log:
            self.logs.delete(topic_partition, now_ms=now_ms)

    def set_aside_all_but(self, wanted: Collection[TopicPartition]) -> None:
        """The controller has named all partitions of this broker: others are strays, kept but not served."""
        for topic_partition in [known for known in self._partitions if known not in wanted]:
            self.drop(topic_partition, delete_log=False, now_ms=0)
        self.logs.set_aside_strays(lambda log: log.partition in wanted)

    def disk_failed(self, partition: Partition, error: StorageError) -> list[TopicPartition]:
        """A log could not be written or read; the partitions that went offline with its directory."""
        lost = self.logs.report_failure(partition.topic_partition, error)
        for topic_partition in lost:
            self.drop(topic_partition, delete_log=False, now_ms=0)
        return lost
