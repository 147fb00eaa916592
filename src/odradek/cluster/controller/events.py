"""What can happen to the controller: changes seen in the store, answers of brokers, wishes of brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from odradek.cluster.controller.requests import ControlRequest
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


class _Notice:
    """An event that says all by its class; watchers are kept by what they tell, so equal ones are one."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ElectController(_Notice):
    """The office may be vacant: try to take it."""


class BrokersChanged(_Notice):
    """A broker came or went, below /brokers/ids."""


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """A broker wrote its registration anew: other listeners, another rack."""

    broker_id: int


class TopicsChanged(_Notice):
    """A topic was made or is gone, below /brokers/topics."""


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """A topic's node was written: partitions were added."""

    topic: str


class DeletionsChanged(_Notice):
    """A topic is to be deleted, below /admin/delete_topics."""


class PreferredElectionChanged(_Notice):
    """Somebody wrote /admin/preferred_replica_election."""


class IsrChangesNoted(_Notice):
    """Notes below /isr_change_notification: state nodes were changed by others."""


class LogDirEventsNoted(_Notice):
    """Notes below /log_dir_event_notification: a broker lost a disk, or has room on a full one."""


@dataclass(frozen=True, slots=True)
class TopicConfigChanged:
    """A topic's settings changed; it may now allow an unclean election."""

    topic: str


class RebalanceDue(_Notice):
    """Time to look whether leaders have strayed from the preferred replicas."""


class ResponseReceived(NamedTuple):
    """A broker has answered a control request."""

    broker_id: int
    request: ControlRequest
    response: ControlResponse


class AlterPartitionAsked(NamedTuple):
    """A leader wishes to change in-sync replicas."""

    request: AlterPartitionRequest
    reply: Callable[[AlterPartitionResponse], None]


class ControlledShutdownAsked(NamedTuple):
    """A broker is about to stop and wants to lead nothing."""

    request: ControlledShutdownRequest
    reply: Callable[[ControlledShutdownResponse], None]


class ElectionAsked(NamedTuple):
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
