"""The state of a cluster that the doctor examines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.client.admin.base import ResultOrError
from odradek.client.admin.cluster import ClusterDescription
from odradek.client.admin.configs import ConfigResource, ResourceType
from odradek.client.admin.log_dirs import LogDirs
from odradek.client.admin.topics import TopicDescription
from odradek.client.errors import BrokerError, ClientError

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic, and those of its settings that decide about availability."""

    description: TopicDescription
    min_isr: int
    is_throttled: bool = False


@dataclass(frozen=True, slots=True)
class ClusterState:
    """`unreachable` has the registered brokers that do not answer, and why."""

    cluster: ClusterDescription
    topics: Mapping[str, TopicState]
    log_dirs: Mapping[int, LogDirs]
    unreachable: Mapping[int, str] = field(default_factory=dict)
    reassignments: int = 0

    @property
    def alive(self) -> set[int]:
        """The registered brokers."""
        return {broker.broker_id for broker in self.cluster.brokers}


def read_cluster(admin: Admin) -> ClusterState:
    """Ask the cluster. A broker that does not answer is a result; errors of the whole cluster are raised."""
    cluster = admin.describe_cluster()
    topics = {
        name: topic for name, topic in admin.describe_topics().items() if isinstance(topic, TopicDescription)
    }
    log_dirs: dict[int, LogDirs] = {}
    unreachable: dict[int, str] = {}
    for broker in cluster.brokers:
        try:
            log_dirs |= admin.describe_log_dirs([broker.broker_id])
        except (BrokerError, ClientError) as error:
            unreachable[broker.broker_id] = f"{broker.host}:{broker.port}: {error}"
    return ClusterState(cluster, _states(admin, topics), log_dirs, unreachable, _reassignments(admin))


def _states(admin: Admin, topics: Mapping[str, TopicDescription]) -> dict[str, TopicState]:
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    configs: Mapping[ConfigResource, ResultOrError[dict]] = (  # type: ignore[type-arg]
        admin.describe_configs(resources) if resources else {}
    )
    states = {}
    for resource, entries in configs.items():
        if isinstance(entries, BrokerError):
            continue  # deleted since, or not to be read by this user
        states[resource.name] = TopicState(
            topics[resource.name],
            int(entries["min.insync.replicas"].value or 1),
            any(name in entries and entries[name].value for name in THROTTLES),
        )
    return states


def _reassignments(admin: Admin) -> int:
    try:
        return len(admin.list_partition_reassignments())
    except (BrokerError, ClientError):
        return 0  # an older cluster, or not allowed
