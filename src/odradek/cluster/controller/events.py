"""The controller's events: changes in the store, responses of brokers, requests of brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.controller.state.context import ReplicaAssignment
from odradek.cluster.controller.state.election import Election
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)

ControlResponse = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse
ElectionResults = dict[TopicPartition, ErrorCode]


class ReassignmentResult(NamedTuple):
    """The outcome for one partition."""

    error: ErrorCode
    message: str | None = None


ReassignmentResults = dict[TopicPartition, ReassignmentResult]
ReassignmentsInProgress = dict[TopicPartition, ReplicaAssignment]


class _SignalEvent:
    """An event without fields; all of one class are equal, so that they share a watcher."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ElectController(_SignalEvent):
    """There may be no controller: take part in the election."""


class BrokersChanged(_SignalEvent):
    """A broker was added or removed below /brokers/ids."""


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker changed its registration: its listeners or its rack."""

    broker_id: int


class TopicsChanged(_SignalEvent):
    """A topic was created or removed below /brokers/topics."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """A topic's node was written: partitions were added."""

    topic: str


class DamagedStatesChanged(_SignalEvent):
    """A damaged state node of a partition was written or removed."""


class DeletionsChanged(_SignalEvent):
    """A deletion was requested below /admin/delete_topics."""


class PreferredElectionChanged(_SignalEvent):
    """/admin/preferred_replica_election was written."""


class ReassignmentsChanged(_SignalEvent):
    """/admin/reassign_partitions was written."""


class IsrChangesNotified(_SignalEvent):
    """Notifications below /isr_change_notification: brokers changed state nodes."""


class LogDirEventsNotified(_SignalEvent):
    """Notifications below /log_dir_event_notification: a disk failed, or a full one has space again."""


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's settings changed; it may now allow an unclean election."""

    topic: str


class RebalanceDue(_SignalEvent):
    """Time to check the imbalance of preferred leaders."""


class ResponseReceived(NamedTuple):
    """A broker has answered a control request."""

    broker_id: int
    request: ControlRequest
    response: ControlResponse


class AlterPartitionRequested(NamedTuple):
    """A leader requests a change of its in-sync replicas."""

    request: AlterPartitionRequest
    reply: Callable[[AlterPartitionResponse], None]


class ControlledShutdownRequested(NamedTuple):
    """A broker is about to stop, and its leaders must be moved."""

    request: ControlledShutdownRequest
    reply: Callable[[ControlledShutdownResponse], None]


class ElectionRequested(NamedTuple):
    """An administrator requests elections; None means every partition."""

    election: Election
    partitions: tuple[TopicPartition, ...] | None
    reply: Callable[[ElectionResults | ErrorCode], None]


class ReassignmentRequested(NamedTuple):
    """An administrator gives partitions other replicas; None cancels."""

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    allows_other_factor: bool
    reply: Callable[[ReassignmentResults | ErrorCode], None]


class ReassignmentsListed(NamedTuple):
    """An administrator asks which partitions are being reassigned; None means every partition."""

    partitions: tuple[TopicPartition, ...] | None
    reply: Callable[[ReassignmentsInProgress | ErrorCode], None]


Event = (
    ElectController
    | BrokersChanged
    | BrokerChanged
    | TopicsChanged
    | PartitionsChanged
    | DamagedStatesChanged
    | DeletionsChanged
    | PreferredElectionChanged
    | ReassignmentsChanged
    | IsrChangesNotified
    | LogDirEventsNotified
    | TopicConfigChanged
    | RebalanceDue
    | ResponseReceived
    | AlterPartitionRequested
    | ControlledShutdownRequested
    | ElectionRequested
    | ReassignmentRequested
    | ReassignmentsListed
)
