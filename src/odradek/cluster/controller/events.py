"""What can happen to the controller: changes seen in the store, answers of brokers, wishes of brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.cluster.controller.election import Election
from odradek.cluster.controller.requests import ControlRequest
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


@dataclass(frozen=True, slots=True)
class ElectController:
    """The office may be vacant: try to take it."""


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker came or went, below /brokers/ids."""


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker wrote its registration anew: other listeners, another rack."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """A topic was made or is gone, below /brokers/topics."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """A topic's node was written: partitions were added."""

    topic: str


@dataclass(frozen=True, slots=True)
class DeletionsChanged:
    """A topic is to be deleted, below /admin/delete_topics."""


@dataclass(frozen=True, slots=True)
class PreferredElectionChanged:
    """Somebody wrote /admin/preferred_replica_election."""


@dataclass(frozen=True, slots=True)
class IsrChangesNoted:
    """Notes below /isr_change_notification: state nodes were changed by others."""


@dataclass(frozen=True, slots=True)
class LogDirEventsNoted:
    """Notes below /log_dir_event_notification: a broker lost a disk."""


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's settings changed; it may now allow an unclean election."""

    topic: str


@dataclass(frozen=True, slots=True)
class RebalanceDue:
    """Time to look whether leaders have strayed from the preferred replicas."""


@dataclass(frozen=True, slots=True)
class ResponseReceived:
    """A broker has answered a control request."""

    broker_id: int
    request: ControlRequest
    response: ControlResponse


@dataclass(frozen=True, slots=True)
class AlterPartitionAsked:
    """A leader wishes to change in-sync replicas."""

    request: AlterPartitionRequest
    reply: Callable[[AlterPartitionResponse], None]


@dataclass(frozen=True, slots=True)
class ControlledShutdownAsked:
    """A broker is about to stop and wants to lead nothing."""

    request: ControlledShutdownRequest
    reply: Callable[[ControlledShutdownResponse], None]


@dataclass(frozen=True, slots=True)
class ElectionAsked:
    """An administrator wants leaders elected; None means every partition."""

    election: Election
    partitions: tuple[TopicPartition, ...] | None
    reply: Callable[[ElectionResults | ErrorCode], None]


Event = (
    ElectController
    | BrokersChanged
    | BrokerChanged
    | TopicsChanged
    | PartitionsChanged
    | DeletionsChanged
    | PreferredElectionChanged
    | IsrChangesNoted
    | LogDirEventsNoted
    | TopicConfigChanged
    | RebalanceDue
    | ResponseReceived
    | AlterPartitionAsked
    | ControlledShutdownAsked
    | ElectionAsked
)
