"""Validates new topics and assigns their replicas; does not use the store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from odradek.cluster.topics.placement import Assignment, BrokerLocation, place_more_replicas, place_replicas
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import check_topic_name

UNSPECIFIED = -1


class NewTopic(NamedTuple):
    """A new topic. -1 stands for the broker's default; a manual assignment excludes both numbers."""

    name: str
    partition_count: int = UNSPECIFIED
    replication_factor: int = UNSPECIFIED
    assignment: Mapping[int, Sequence[int]] = MappingProxyType({})
    configs: Mapping[str, str] = MappingProxyType({})


class PlacementSeed(NamedTuple):
    """The two random numbers of placement, chosen by the caller."""

    start_index: int
    shift: int


def check_new_name(name: str, existing: Collection[str]) -> None:
    """Refuse a name that is illegal, taken, or the same as another but for '.' and '_'."""
    check_topic_name(name)
    if name in existing:
        raise KafkaError(f"Topic '{name}' already exists.", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    # Metric names turn dots into underscores; two such topics would share theirs.
    folded = name.replace(".", "_")
    colliding = sorted(other for other in existing if other.replace(".", "_") == folded)
    if colliding:
        raise KafkaError(
            f"Topic '{name}' collides with existing topic: {', '.join(colliding)}",
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION,
        )


def assign_new_topic(
    topic: NewTopic,
    sites: Iterable[BrokerLocation],
    *,
    default_partitions: int,
    default_factor: int,
    seed: PlacementSeed,
) -> Assignment:
    """The replicas of each partition: those asked for, or placed by the rule."""
    available = list(sites)
    if topic.assignment:
        if (topic.partition_count, topic.replication_factor) != (UNSPECIFIED, UNSPECIFIED):
            raise KafkaError(
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
                error_code=ErrorCode.INVALID_REQUEST,
            )
        return _check_manual(topic.assignment, available)
    count = default_partitions if topic.partition_count == UNSPECIFIED else topic.partition_count
    factor = default_factor if topic.replication_factor == UNSPECIFIED else topic.replication_factor
    return place_replicas(available, count, factor, start_index=seed.start_index, shift=seed.shift)


def assign_more_partitions(
    topic: str,
    existing: Assignment,
    total_count: int,
    manual: Sequence[Sequence[int]] | None,
    sites: Iterable[BrokerLocation],
) -> Assignment:
    """The replicas of the partitions that make `total_count` out of what is there."""
    current, available = len(existing), list(sites)
    if sorted(existing) != list(range(current)) or not existing:
        _refuse_assignment(f"The partitions of {topic} are not numbered from 0 on without a gap.")
    if total_count == current:
        _refuse_partitions(f"Topic already has {current} partition(s).")
    if total_count < current:
        _refuse_partitions(
            f"The topic {topic} currently has {current} partition(s); {total_count} would not be an increase."
        )
    added = total_count - current
    if manual is None:
        return place_more_replicas(available, existing, added)
    if len(manual) != added:
        _refuse_assignment(
            f"Attempted to add {added} additional partition(s), "
            f"but only {len(manual)} assignment(s) were specified."
        )
    for replicas in manual:
        _check_replicas(replicas, available, len(existing[0]))
    return {current + index: tuple(replicas) for index, replicas in enumerate(manual)}


def _check_manual(manual: Mapping[int, Sequence[int]], sites: Sequence[BrokerLocation]) -> Assignment:
    if sorted(manual) != list(range(len(manual))):
        _refuse_assignment("partitions should be a consecutive 0-based integer sequence")
    factor = len(manual[0])
    for _, replicas in sorted(manual.items()):
        _check_replicas(replicas, sites, factor)
    return {index: tuple(replicas) for index, replicas in sorted(manual.items())}


def _check_replicas(replicas: Sequence[int], sites: Sequence[BrokerLocation], factor: int) -> None:
    if not replicas:
        _refuse_assignment("The manual partition assignment includes an empty replica list.")
    known = {site.broker_id for site in sites}
    for broker_id in replicas:
        if broker_id not in known:
            _refuse_assignment(
                f"The manual partition assignment includes broker {broker_id}, "
                f"but no such broker is registered."
            )
        if replicas.count(broker_id) > 1:
            _refuse_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
    if len(replicas) != factor:
        _refuse_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), "
            f"but this is not consistent with previous partitions, which have {factor} replica(s)."
        )


def _refuse_assignment(message: str) -> None:
    raise KafkaError(message, error_code=ErrorCode.INVALID_REPLICA_ASSIGNMENT)


def _refuse_partitions(message: str) -> None:
    raise KafkaError(message, error_code=ErrorCode.INVALID_PARTITIONS)
