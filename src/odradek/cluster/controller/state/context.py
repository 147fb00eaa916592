"""The controller's view of the cluster: read at its election, updated by its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import NamedTuple

from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH, Broker
from odradek.cluster.metadata import NO_LEADER, NO_TOPIC_ID
from odradek.common.ids import TopicPartition

INITIAL_LEADER_EPOCH = 0
NO_PARTITION_EPOCH = -1


class PartitionState(Enum):
    """The state of a partition; partition_states.py has the table."""

    NON_EXISTENT = "NonExistentPartition"
    NEW = "NewPartition"
    ONLINE = "OnlinePartition"
    OFFLINE = "OfflinePartition"


class ReplicaState(Enum):
    """The state of one replica; replica_states.py has the table."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"


class LeaderRecoveryState(IntEnum):
    """Whether a leader that was elected uncleanly has yet to recover (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


class PartitionReplica(NamedTuple):
    """One copy of one partition."""

    partition: TopicPartition
    broker_id: int


class ReplicaAssignment(NamedTuple):
    """The replicas of a partition, in order of preference, and those that a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        """Whether a move is under way."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas once the move is over."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the move, as a cancellation restores them."""
        return tuple(id_ for id_ in self.replicas if id_ not in self.adding)


class LeaderAndIsr(NamedTuple):
    """A partition's state node: who leads, who is in sync. `partition_epoch` is the node's version."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = NO_PARTITION_EPOCH


@dataclass(slots=True)
class TopicDeletions:
    """Topics to be deleted; topic_deletion.py decides the next steps."""

    queued: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    # Halted by a dead broker, a failed disk or a move; tried again when that has changed.
    ineligible: set[str] = field(default_factory=set)


@dataclass(slots=True)
class ControllerContext:
    """The cluster as the controller knows it.

    Owned by the controller's event loop, changed by one event at a time. Empty while another broker is
    controller.
    """

    epoch: int = 0
    epoch_version: int = -1
    brokers: dict[int, Broker] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    # Topics with partitions whose own node is damaged: their assignment is unknown, their logs must stay.
    damaged_topics: set[str] = field(default_factory=set)
    assignments: dict[str, dict[int, ReplicaAssignment]] = field(default_factory=dict)
    leadership: dict[TopicPartition, LeaderAndIsr] = field(default_factory=dict)
    # Partitions whose state node is damaged: nobody can be elected, and their replicas stay as they are.
    unreadable: set[TopicPartition] = field(default_factory=set)
    partition_states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    replica_states: dict[PartitionReplica, ReplicaState] = field(default_factory=dict)
    # Replicas that a live broker cannot serve, because their disk has failed.
    offline_directories: dict[int, set[TopicPartition]] = field(default_factory=dict)
    deletions: TopicDeletions = field(default_factory=TopicDeletions)

    # Brokers

    def broker_epoch(self, broker_id: int) -> int:
        """The epoch of that broker's registration."""
        broker = self.brokers.get(broker_id)
        return UNKNOWN_BROKER_EPOCH if broker is None else broker.epoch

    def live(self) -> set[int]:
        """Brokers that may lead."""
        return self.brokers.keys() - self.shutting_down

    def is_replica_online(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether that broker is live and the disk of the partition works."""
        return broker_id in self.brokers and partition not in self.offline_directories.get(broker_id, ())

    def can_lead(self, broker_id: int, partition: TopicPartition) -> bool:
        """Whether that broker may be elected."""
        return broker_id not in self.shutting_down and self.is_replica_online(broker_id, partition)

    # Topics

    def topic_id(self, topic: str) -> bytes:
        """The topic's id; zeros when it has none."""
        return self.topic_ids.get(topic, NO_TOPIC_ID)

    def topic_named(self, topic_id: bytes) -> str | None:
        """The topic with that id."""
        return next((name for name, known in self.topic_ids.items() if known == topic_id), None)

    def is_queued_for_deletion(self, topic: str) -> bool:
        """Whether the topic is being deleted."""
        return topic in self.deletions.queued

    def remove_topic(self, topic: str) -> None:
        """Remove everything of a deleted topic."""
        for replica in list(self.replicas_of_topic(topic)):
            self.replica_states.pop(replica, None)
        for partition in list(self.partitions_of(topic)):
            self.partition_states.pop(partition, None)
            self.leadership.pop(partition, None)
            self.unreadable.discard(partition)
            for failed in self.offline_directories.values():
                failed.discard(partition)
        self.assignments.pop(topic, None)
        self.topic_ids.pop(topic, None)
        for marked in (self.deletions.queued, self.deletions.started, self.deletions.ineligible):
            marked.discard(topic)

    # Partitions and replicas

    def offline_partitions(self) -> int:
        """How many partitions have no leader, those of topics that are being deleted left out."""
        return sum(
            state is not PartitionState.ONLINE and not self.is_queued_for_deletion(partition.topic)
            for partition, state in self.partition_states.items()
        )

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        """The replicas of a partition; none when it is unknown."""
        return self.assignments.get(partition.topic, {}).get(partition.partition, ReplicaAssignment(()))

    def assign(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        """Set the replicas of a partition."""
        self.assignments.setdefault(partition.topic, {})[partition.partition] = assignment

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition of every topic."""
        for topic in self.assignments:
            yield from self.partitions_of(topic)

    def partitions_of(self, topic: str) -> Iterator[TopicPartition]:
        """Every partition of one topic."""
        return (TopicPartition(topic, index) for index in self.assignments.get(topic, {}))

    def replicas_of(self, partitions: Iterable[TopicPartition]) -> Iterator[PartitionReplica]:
        """Every replica of these partitions."""
        return (
            PartitionReplica(partition, broker_id)
            for partition in partitions
            for broker_id in self.assignment(partition).replicas
        )

    def replicas_of_topic(self, topic: str) -> Iterator[PartitionReplica]:
        """Every replica of one topic."""
        return self.replicas_of(self.partitions_of(topic))

    def replicas_on(self, broker_ids: Iterable[int]) -> list[PartitionReplica]:
        """Every replica that belongs on one of these brokers."""
        wanted = set(broker_ids)
        return [replica for replica in self.replicas_of(self.partitions()) if replica.broker_id in wanted]

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        """The state of a partition."""
        return self.partition_states.get(partition, PartitionState.NON_EXISTENT)

    def replica_state(self, replica: PartitionReplica) -> ReplicaState:
        """The state of a replica."""
        return self.replica_states.get(replica, ReplicaState.NON_EXISTENT)

    def set_partition_state(self, partition: TopicPartition, state: PartitionState) -> None:
        """Set the state of a partition; the caller has checked the transition."""
        if state is PartitionState.NON_EXISTENT:
            self.partition_states.pop(partition, None)
        else:
            self.partition_states[partition] = state

    def set_replica_state(self, replica: PartitionReplica, state: ReplicaState) -> None:
        """Set the state of a replica; the caller has checked the transition."""
        if state is ReplicaState.NON_EXISTENT:
            self.replica_states.pop(replica, None)
        else:
            self.replica_states[replica] = state

    def has_live_leader(self, partition: TopicPartition) -> bool:
        """Whether a partition is led by a broker that can serve it."""
        state = self.leadership.get(partition)
        return (
            state is not None
            and state.leader != NO_LEADER
            and self.is_replica_online(state.leader, partition)
        )
