"""`odradek topics describe`: partitions, leaders, replicas and settings of topics.

The lines are those of kafka-topics.sh: one for the topic, then one for each partition, with tabs between.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.cli.topic_names import matching, regex_option, topics_argument
from odradek.common.ids import uuid_to_text

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.partitions import PartitionReassignment
    from odradek.client.admin.topics import PartitionDescription, TopicDescription

_FILTERS = (
    ("under_replicated_partitions", "Only partitions with a replica that is not in sync."),
    ("unavailable_partitions", "Only partitions without a leader."),
    ("under_min_isr_partitions", "Only partitions with fewer replicas in sync than min.insync.replicas."),
    ("at_min_isr_partitions", "Only partitions with exactly min.insync.replicas replicas in sync."),
    ("topics_with_overrides", "Only topics with settings of their own, without their partitions."),
)


def _filter_options(function: Any) -> Any:
    for name, words in reversed(_FILTERS):
        function = click.option(f"--{name.replace('_', '-')}", is_flag=True, help=words)(function)
    return function


@click.command("describe")
@topics_argument(required=False)
@regex_option
@_filter_options
@click.option("--exclude-internal", is_flag=True, help="Leave out topics such as __consumer_offsets.")
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    regex: bool,
    exclude_internal: bool,
    if_exists: bool,
    bootstrap: str,
    output: str | None,
    **filters: bool,
) -> None:
    """Describe all topics, or those that are named.

    odradek topics describe orders
    """
    if sum(filters.values()) > 1:
        raise UsageProblem("these flags exclude each other: " + ", ".join(_flags(filters)))
    chosen = next((name for name, is_set in filters.items() if is_set), "")
    with admin_client(bootstrap) as admin:
        names = matching(
            admin, topics, regex=regex, include_internal=not exclude_internal, may_be_missing=if_exists
        )
        found = _chosen(_described(admin, names), chosen)
    rows = [row for topic in found for row in _table_rows(topic)]
    lines = [line for topic in found for line in _lines(topic, chosen)]
    print_rows(
        output, rows, lines, title="such topics or partitions", objects=[_object(one) for one in found]
    )


@dataclass(frozen=True, slots=True)
class _Shown:
    """A topic, its settings that differ from the defaults, and the partitions to show of it."""

    topic: TopicDescription
    configs: dict[str, str | None]
    min_isr: int
    partitions: list[PartitionDescription]
    reassignments: dict[int, PartitionReassignment]

    def replica_count(self, partition: PartitionDescription) -> int:
        """The replicas, without those that a reassignment adds."""
        reassignment = self.reassignments.get(partition.partition)
        return len(partition.replicas) - len(reassignment.adding_replicas if reassignment else ())


def _described(admin: Admin, names: list[str]) -> list[_Shown]:
    from odradek.client.admin.base import require  # noqa: PLC0415
    from odradek.client.admin.configs import ConfigResource, ConfigSource, ResourceType  # noqa: PLC0415

    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    described = admin.describe_topics(names)
    configs = admin.describe_configs(resources) if resources else {}
    reassignments = _reassignments(admin) if resources else {}
    shown = []
    for resource in resources:
        topic = require(described[resource.name])
        entries = require(configs[resource])
        own = {
            one.name: one.value for one in entries.values() if one.source is not ConfigSource.DEFAULT_CONFIG
        }
        min_isr = int(entries["min.insync.replicas"].value or 1)
        moving = reassignments.get(resource.name, {})
        shown.append(_Shown(topic, own, min_isr, list(topic.partitions), moving))
    return shown


def _reassignments(admin: Admin) -> dict[str, dict[int, PartitionReassignment]]:
    """Those under way, by topic and partition; none where they may not be listed, as in Kafka's tool."""
    from odradek.client.broker_errors import ClusterAuthorizationFailed  # noqa: PLC0415
    from odradek.client.errors import UnsupportedByBroker  # noqa: PLC0415

    found: dict[str, dict[int, PartitionReassignment]] = {}
    with contextlib.suppress(ClusterAuthorizationFailed, UnsupportedByBroker):
        for partition, one in admin.list_partition_reassignments().items():
            found.setdefault(partition.topic, {})[partition.partition] = one
    return found


def _chosen(topics: list[_Shown], chosen: str) -> list[_Shown]:
    """What a filter leaves: topics with settings of their own, or topics with at least one such partition."""
    if not chosen:
        return topics
    if chosen == "topics_with_overrides":
        return [replace(one, partitions=[]) for one in topics if one.configs]
    kept = [
        replace(one, partitions=[part for part in one.partitions if _passes(one, part, chosen)])
        for one in topics
    ]
    return [one for one in kept if one.partitions]


def _passes(shown: _Shown, partition: PartitionDescription, chosen: str) -> bool:
    match chosen:
        case "under_replicated_partitions":
            return len(partition.isr) < shown.replica_count(partition)
        case "unavailable_partitions":
            return partition.leader is None
        case "under_min_isr_partitions":
            return len(partition.isr) < shown.min_isr
        case _:
            return len(partition.isr) == shown.min_isr


def _lines(shown: _Shown, chosen: str) -> Iterator[str]:
    topic = shown.topic
    if not chosen or chosen == "topics_with_overrides":
        factor = shown.replica_count(topic.partitions[0]) if topic.partitions else 0
        configs = ",".join(f"{name}={value}" for name, value in sorted(shown.configs.items()))
        yield (
            f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}\tPartitionCount: "
            f"{len(topic.partitions)}\tReplicationFactor: {factor}\tConfigs: {configs}"
        )
    for one in shown.partitions:
        yield (
            f"\tTopic: {topic.name}\tPartition: {one.partition}\tLeader: {_leader(one)}"
            f"\tReplicas: {_ids(one.replicas)}\tIsr: {_ids(one.isr)}{_reassigned(shown, one)}"
            f"\tElr: {_ids(one.elr)}\tLastKnownElr: {_ids(one.last_known_elr)}"
        )


def _reassigned(shown: _Shown, partition: PartitionDescription) -> str:
    one = shown.reassignments.get(partition.partition)
    if one is None:
        return ""
    return f"\tAdding Replicas: {_ids(one.adding_replicas)}\tRemoving Replicas: {_ids(one.removing_replicas)}"


def _table_rows(shown: _Shown) -> Iterator[dict[str, Any]]:
    if not shown.partitions:
        yield {"topic": shown.topic.name, "configs": shown.configs}
    for index, one in enumerate(shown.partitions):
        yield {
            "topic": shown.topic.name,
            "partition": one.partition,
            "leader": _leader(one),
            "replicas": _ids(one.replicas),
            "isr": _ids(one.isr),
            "osr": _ids(_osr(one)),
            "offline": _ids(one.offline_replicas),
            "configs": shown.configs if index == 0 else {},
        }


def _object(shown: _Shown) -> dict[str, Any]:
    topic = shown.topic
    return {
        "topic": topic.name,
        "topic_id": uuid_to_text(topic.topic_id),
        "internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": topic.replication_factor,
        "configs": shown.configs,
        "partitions": [
            {
                "partition": one.partition,
                "leader": one.leader,
                "leader_epoch": one.leader_epoch,
                "replicas": one.replicas,
                "isr": one.isr,
                "osr": _osr(one),
                "elr": one.elr,
                "last_known_elr": one.last_known_elr,
                "offline_replicas": one.offline_replicas,
                "adding_replicas": _adding(shown, one),
                "removing_replicas": _removing(shown, one),
            }
            for one in shown.partitions
        ],
    }


def _osr(partition: PartitionDescription) -> tuple[int, ...]:
    """The replicas that are not in sync: `replicas` without `isr`."""
    return tuple(broker for broker in partition.replicas if broker not in partition.isr)


def _adding(shown: _Shown, partition: PartitionDescription) -> tuple[int, ...]:
    one = shown.reassignments.get(partition.partition)
    return () if one is None else one.adding_replicas


def _removing(shown: _Shown, partition: PartitionDescription) -> tuple[int, ...]:
    one = shown.reassignments.get(partition.partition)
    return () if one is None else one.removing_replicas


def _leader(partition: PartitionDescription) -> str:
    return "none" if partition.leader is None else str(partition.leader)


def _ids(brokers: tuple[int, ...] | None) -> str:
    return "N/A" if brokers is None else ",".join(str(broker) for broker in brokers)


def _flags(filters: dict[str, bool]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name, is_set in filters.items() if is_set]
