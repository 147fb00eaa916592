"""Every partition that has a replica on this broker: found by name or by id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple
from uuid import UUID

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.creation import Creation
from odradek.log.directories.log_directory import LogDirectory
from odradek.log.directories.log_manager import LogManager
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.metrics.counters import TopicTraffic
from odradek.replication.counters import ReplicationCounters
from odradek.replication.follower.fetcher_manager import FetcherManager
from odradek.replication.isr_changes import IsrChanges
from odradek.replication.partition import NO_EPOCH, LeaderAndIsrState, Partition
from odradek.replication.pending_leader_epochs import PendingLeaderEpochs

NO_TOPIC_ID = bytes(16)


class UnknownPartition(KafkaError):
    """This broker has no replica of the partition."""

    error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class ReplicaSetup(NamedTuple):
    """A replica to be served once its log exists, and its leader epoch is written if this broker leads.

    `start_offset`: where the epoch begins; the log end of a new log if None.
    """

    topic_partition: TopicPartition
    topic_id: bytes
    state: LeaderAndIsrState
    log: PartitionLog | None
    creation: Creation | None
    led_epoch: int
    start_offset: int | None
    now_ms: int = 0

    @property
    def blocks(self) -> bool:
        """Whether anything must be written to the disk."""
        if self.log is None:
            return True
        return self.led_epoch > self.log.epochs.latest or self._assigns_topic_id

    @property
    def _assigns_topic_id(self) -> bool:
        """Whether the log was written without topic ids, or its `partition.metadata` was deleted."""
        return self.log is not None and self.log.topic_id is None and self.topic_id != NO_TOPIC_ID

    def run(self) -> None:
        """Write it to the disk; any thread, blocks. StorageError if that fails for a log that was here."""
        if self.creation is not None:
            self.creation.run()
        log = self.log if self.creation is None else self.creation.log
        if self.log is not None and self._assigns_topic_id:
            self.log.assign_topic_id(UUID(bytes=self.topic_id))
        if log is not None:
            log.assign_leader_epoch(self.led_epoch, self.start_offset)


class ReplicaManager:
    """The partitions of this broker. Owned by the broker, on the loop.

    `partitions` are found by topic and index, `topic_names` by topic id; only the methods here change them.
    `pending_epochs`: the partitions that this broker is about to lead in a new epoch, which is being written.
    `isr_changes` and `fetchers` are set by `replicate_with`; without them nothing is replicated.
    """

    def __init__(self, broker_id: int, logs: LogManager, on_progress: Callable[[Partition], None]) -> None:
        self.broker_id = broker_id
        self.logs = logs
        self.on_progress = on_progress
        self.partitions: dict[TopicPartition, Partition] = {}
        self.topic_names: dict[bytes, str] = {}
        self.traffic: dict[str, TopicTraffic] = {}
        self.counters = ReplicationCounters()
        self.pending_epochs = PendingLeaderEpochs()
        self.isr_changes: IsrChanges | None = None
        self.fetchers: FetcherManager | None = None

    def replicate_with(self, isr_changes: IsrChanges, fetchers: FetcherManager) -> None:
        """Replicate with other brokers from now on; called before the first partition is hosted."""
        self.isr_changes = isr_changes
        self.fetchers = fetchers

    async def stop_replicating(self) -> None:
        """Fetch nothing more and ask for no other ISR; the logs are about to be closed."""
        if self.fetchers is not None:
            await self.fetchers.stop()
        if self.isr_changes is not None:
            await self.isr_changes.stop()

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions.values())

    def __len__(self) -> int:
        return len(self.partitions)

    def find(self, topic: str, partition: int) -> Partition | None:
        """The partition, if it has a replica here."""
        # A plain tuple hashes and compares like a TopicPartition and is cheaper to make.
        return self.partitions.get((topic, partition))  # type: ignore[call-overload, no-any-return]

    def get(self, topic: str, partition: int) -> Partition:
        """The partition; UnknownPartition if it has no replica here."""
        found = self.find(topic, partition)
        if found is None:
            raise UnknownPartition(f"{topic}-{partition} is not on this broker")
        return found

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic that has a partition here."""
        return self.topic_names.get(topic_id)

    def log_of_other_topic(self, topic_partition: TopicPartition, topic_id: bytes) -> PartitionLog | None:
        """The log of this partition if it belongs to another topic of the same name, by `partition.metadata`.

        This happens if the topic was deleted and created again while this broker was down.
        """
        log = self.logs.get(topic_partition)
        if log is None or log.topic_id is None or topic_id in (NO_TOPIC_ID, log.topic_id.bytes):
            return None
        return log

    def host(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        state: LeaderAndIsrState,
        config: LogConfig,
        *,
        now_ms: int,
    ) -> Partition:
        """Serve a replica of this partition in this state; its log is created if there is none. Blocks."""
        setup = self.begin_setup(topic_partition, topic_id, state, config, now_ms=now_ms)
        try:
            setup.run()
        except StorageError:
            self.cancel_setup(setup)
            raise
        return self.complete_setup(setup)

    def begin_setup(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        state: LeaderAndIsrState,
        config: LogConfig,
        *,
        now_ms: int,
        is_new: bool = True,
    ) -> ReplicaSetup:
        """Decide what a replica in this state needs on the disk; `run` writes it where blocking is allowed.

        `is_new`: whether the partition was never here, so that no directory that is offline can have its log.
        If a new leader epoch has to be written, it begins at the log end of this moment: nothing is appended
        until `complete_setup`, or `cancel_setup` if it cannot be written.
        """
        partition = self.partitions.get(topic_partition)
        log = partition.log if partition is not None else self.logs.get(topic_partition)
        creation = None
        if log is None:
            known_id = UUID(bytes=topic_id) if topic_id != NO_TOPIC_ID else None
            creation = self.logs.begin_creation(
                topic_partition, config, now_ms=now_ms, topic_id=known_id, is_new=is_new
            )
        is_new_epoch = partition is None or state.leader_epoch > partition.state.leader_epoch
        led_epoch = state.leader_epoch if is_new_epoch and state.leader_id == self.broker_id else NO_EPOCH
        start_offset = None
        if log is not None and led_epoch > log.epochs.latest:
            start_offset = log.log_end_offset if partition is None else partition.suspend_appends()
            self.pending_epochs.add(topic_partition)
        if led_epoch != NO_EPOCH and self.fetchers is not None:
            self.fetchers.unfollow(topic_partition)
        return ReplicaSetup(topic_partition, topic_id, state, log, creation, led_epoch, start_offset, now_ms)

    def cancel_setup(self, setup: ReplicaSetup) -> None:
        """It cannot be written: keep the old state."""
        partition = self.partitions.get(setup.topic_partition)
        if partition is not None:
            partition.resume_appends()
            self._follow_or_not(partition)
        self.pending_epochs.discard(setup.topic_partition)

    def complete_setup(self, setup: ReplicaSetup) -> Partition:
        """The disk is ready: serve the partition, in the state that the controller decided."""
        topic_partition, topic_id = setup.topic_partition, setup.topic_id
        log = setup.log
        if setup.creation is not None:
            log = self.logs.complete_creation(setup.creation)
        assert log is not None
        partition = self.partitions.get(topic_partition)
        if partition is None:
            traffic = self.traffic.setdefault(topic_partition.topic, TopicTraffic())
            partition = Partition(
                topic_partition, topic_id, self.broker_id, log, self.on_progress, traffic, self.isr_changes
            )
            self.partitions[topic_partition] = partition
            self.topic_names[topic_id] = topic_partition.topic
        partition.become(setup.state, setup.now_ms)
        self._follow_or_not(partition)
        self.pending_epochs.discard(topic_partition)
        return partition

    def _follow_or_not(self, partition: Partition) -> None:
        """Fetch a partition that another broker leads, and no other."""
        if self.fetchers is None:
            return
        if partition.is_leader or partition.state.leader_id < 0:
            self.fetchers.unfollow(partition.topic_partition)
        else:
            self.fetchers.follow(partition)

    def shrink_isrs(self, now_ms: int) -> None:
        """Have followers removed from the ISR that are behind for more than `replica.lag.time.max.ms`."""
        for partition in list(self.partitions.values()):
            if partition.is_leader and not partition.is_sole_replica:
                partition.shrink_isr(now_ms)

    def on_brokers_changed(self) -> None:
        """Brokers have come or gone: no leader waits for the followers of a dead one."""
        for partition in list(self.partitions.values()):
            if partition.is_leader and not partition.is_sole_replica:
                partition.on_brokers_changed()

    def replace_log(self, topic_partition: TopicPartition, log: PartitionLog) -> None:
        """A copy in another directory has taken the place of the log."""
        partition = self.partitions.get(topic_partition)
        if partition is not None:
            partition.log = log

    def drop(self, topic_partition: TopicPartition) -> None:
        """Serve no replica of it any more; its log stays."""
        if self.fetchers is not None:
            self.fetchers.unfollow(topic_partition)
        partition = self.partitions.pop(topic_partition, None)
        if partition is not None:
            if not any(other.topic_id == partition.topic_id for other in self.partitions.values()):
                self.topic_names.pop(partition.topic_id, None)
                self.traffic.pop(topic_partition.topic, None)
            partition.stop()

    def set_aside_all_but(self, wanted: Collection[TopicPartition]) -> dict[str, PartitionLog]:
        """Serve no other partitions than these; the logs of others by their new paths: kept, not served."""
        for topic_partition in [known for known in self.partitions if known not in wanted]:
            self.drop(topic_partition)
        strays = [log for log in self.logs.logs.values() if log.partition not in wanted]
        paths = self.logs.set_aside_strays(lambda log: log.partition in wanted)
        return dict(zip(paths, strays, strict=True))

    def disk_failed(self, topic_partition: TopicPartition, error: StorageError) -> list[TopicPartition]:
        """A log could not be written or read; the partitions that went offline with its directory."""
        directory = self.logs.directory_of(topic_partition)
        return [] if directory is None else self.directory_failed(directory, error)

    def drop_offline(self) -> None:
        """Serve no partition whose log went offline with its directory."""
        for topic_partition, partition in list(self.partitions.items()):
            if self.logs.get(topic_partition) is not partition.log:
                self.drop(topic_partition)

    def directory_failed(self, directory: LogDirectory, error: StorageError) -> list[TopicPartition]:
        """A disk failed; returns the partitions that went offline with it: none if it is only full."""
        if error.is_no_space:
            directory.notice_full(error)
            return []
        lost = self.logs.fail_directory(directory, OSError(error.errno, str(error)))
        for topic_partition in lost:
            self.drop(topic_partition)
        return lost
