"""The throttles of a reassignment: settings of the topics that move, and of the brokers involved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.configs import ResourceType
    from odradek.client.admin.partitions import PartitionReassignment

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"


class Move(NamedTuple):
    """One partition that moves: brokers that have it, and brokers that will get it."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, Move]


def moves(
    under_way: Mapping[TopicPartition, PartitionReassignment],
    current: Mapping[TopicPartition, Sequence[int]],
    planned: Mapping[TopicPartition, Sequence[int]],
) -> dict[TopicPartition, Move]:
    """The moves under way, and those that the plan adds."""
    found = {
        partition: Move(
            frozenset(one.replicas) - frozenset(one.adding_replicas), frozenset(one.adding_replicas)
        )
        for partition, one in under_way.items()
    }
    for partition, brokers in planned.items():
        sources = found[partition].sources if partition in found else frozenset(current[partition])
        found[partition] = Move(sources, frozenset(brokers) - sources)
    return found


def topic_throttles(moving: Moves) -> dict[str, dict[str, str]]:
    """The settings of each topic: which replicas the throttle holds for, on either side."""
    configs: dict[str, dict[str, list[str]]] = {}
    for partition, move in moving.items():
        config = configs.setdefault(partition.topic, {LEADER_REPLICAS: [], FOLLOWER_REPLICAS: []})
        config[LEADER_REPLICAS] += [f"{partition.partition}:{broker}" for broker in move.sources]
        config[FOLLOWER_REPLICAS] += [f"{partition.partition}:{broker}" for broker in move.destinations]
    return {
        topic: {name: ",".join(sorted(replicas)) for name, replicas in config.items()}
        for topic, config in configs.items()
    }


def set_throttle(admin: Admin, moving: Moves, bytes_per_second: int) -> None:
    """Limit replication to and from the brokers involved, for the partitions that move."""
    from odradek.client.admin.configs import ResourceType  # noqa: PLC0415

    for topic, configs in topic_throttles(moving).items():
        _alter(admin, ResourceType.TOPIC, [topic], configs)
    brokers = {broker for move in moving.values() for broker in move.sources | move.destinations}
    rate = str(bytes_per_second)
    _alter(admin, ResourceType.BROKER, map(str, brokers), {LEADER_RATE: rate, FOLLOWER_RATE: rate})


def set_log_dir_throttle(admin: Admin, brokers: Iterable[int], bytes_per_second: int) -> None:
    """Limit moves between the directories of these brokers."""
    from odradek.client.admin.configs import ResourceType  # noqa: PLC0415

    _alter(admin, ResourceType.BROKER, map(str, brokers), {LOG_DIR_RATE: str(bytes_per_second)})


def clear_throttles(admin: Admin, topics: Iterable[str], planned_brokers: Iterable[int]) -> list[str]:
    """Remove all of them; returns the lines to print. Only live brokers can be asked."""
    from odradek.client.admin.configs import ResourceType  # noqa: PLC0415

    alive = {broker.broker_id for broker in admin.describe_cluster().brokers}
    brokers = sorted(alive | set(planned_brokers))
    names = sorted(set(topics))
    rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE))
    _alter(admin, ResourceType.BROKER, map(str, sorted(alive)), rates)
    _alter(admin, ResourceType.TOPIC, names, dict.fromkeys((LEADER_REPLICAS, FOLLOWER_REPLICAS)))
    plural = "" if len(names) == 1 else "s"
    return [
        f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} "
        + ",".join(map(str, brokers)),
        f"Clearing topic-level throttles on topic{plural} {','.join(names)}",
    ]


def _alter(
    admin: Admin, resource_type: ResourceType, names: Iterable[str], configs: Mapping[str, str | None]
) -> None:
    """Set these settings; None deletes one."""
    from odradek.client.admin.base import require  # noqa: PLC0415
    from odradek.client.admin.configs import AlterOperation, ConfigChange, ConfigResource  # noqa: PLC0415

    changes = [
        ConfigChange(name, value, AlterOperation.DELETE if value is None else AlterOperation.SET)
        for name, value in configs.items()
    ]
    resources = {ConfigResource(resource_type, name): changes for name in names}
    if resources:
        for outcome in admin.alter_configs(resources).values():
            require(outcome)
