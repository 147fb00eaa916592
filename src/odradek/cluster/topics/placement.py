"""Which brokers hold which replicas of a new topic, spread evenly over brokers and racks.

Without racks, brokers sorted by id, n of them, partition p:

    first      = (p + start_index) mod n
    replica j  = (first + 1 + (shift + j) mod (n - 1)) mod n        j = 0 for the second replica

`shift` grows by one each time p passes a multiple of n, so that brokers that share one partition do not share
all of them. With racks the brokers are in an order that changes rack at every step, and a replica skips a
broker whose rack already has one while another rack has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

Assignment = dict[int, tuple[int, ...]]


class BrokerLocation(NamedTuple):
    """The rack of a broker."""

    broker_id: int
    rack: str | None = None


def place_replicas(
    sites: Iterable[BrokerLocation],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    start_partition: int = 0,
) -> Assignment:
    """Replicas of partitions `start_partition` and following; the caller chooses the two random numbers."""
    ordered = sorted(sites)
    _check(len(ordered), partition_count, replication_factor)
    racks = {site.broker_id: site.rack for site in ordered if site.rack is not None}
    # If only some brokers have racks, racks are ignored (Kafka's safe mode).
    is_rack_aware = bool(racks) and len(racks) == len(ordered)
    brokers = alternate_racks(ordered) if is_rack_aware else [site.broker_id for site in ordered]

    assignment: Assignment = {}
    for partition in range(start_partition, start_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start_index) % len(brokers)
        if is_rack_aware:
            assignment[partition] = _across_racks(brokers, racks, first, shift, replication_factor)
        else:
            followers = (_follower(brokers, first, shift, j) for j in range(replication_factor - 1))
            assignment[partition] = (brokers[first], *followers)
    return assignment


def place_more_replicas(
    sites: Iterable[BrokerLocation], existing: Assignment, added_count: int
) -> Assignment:
    """Replicas of partitions added to a topic, continuing from its first partition, not at random."""
    ordered = sorted(sites)
    first_replicas = existing[0]
    following = (index for index, site in enumerate(ordered) if site.broker_id >= first_replicas[0])
    start_index = next(following, 0)
    return place_replicas(
        ordered,
        added_count,
        len(first_replicas),
        start_index=start_index,
        shift=start_index,
        start_partition=len(existing),
    )


def alternate_racks(sites: Iterable[BrokerLocation]) -> list[int]:
    """Broker ids in an order that takes one of each rack in index: racks by name, brokers by id."""
    by_rack: dict[str, list[int]] = {}
    for site in sorted(sites, key=lambda site: (site.rack or "", site.broker_id)):
        by_rack.setdefault(site.rack or "", []).append(site.broker_id)
    longest = max(map(len, by_rack.values()), default=0)
    return [ids[index] for index in range(longest) for ids in by_rack.values() if index < len(ids)]


def _follower(brokers: Sequence[int], first: int, shift: int, step: int) -> int:
    count = len(brokers)
    return brokers[(first + 1 + (shift + step) % (count - 1)) % count]


def _across_racks(
    brokers: Sequence[int], racks: dict[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    rack_count = len(set(racks.values()))
    replicas = [brokers[first]]
    used_racks = {racks[brokers[first]]}
    step = 0
    while len(replicas) < replication_factor:
        broker = _follower(brokers, first, shift * rack_count, step)
        step += 1
        repeats_rack = racks[broker] in used_racks and len(used_racks) < rack_count
        if broker in replicas or repeats_rack:
            continue
        replicas.append(broker)
        used_racks.add(racks[broker])
    return tuple(replicas)


def _check(broker_count: int, partition_count: int, replication_factor: int) -> None:
    if partition_count <= 0:
        raise KafkaError(
            "Number of partitions must be larger than 0.", error_code=ErrorCode.INVALID_PARTITIONS
        )
    if replication_factor <= 0:
        raise KafkaError(
            "Replication factor must be larger than 0.", error_code=ErrorCode.INVALID_REPLICATION_FACTOR
        )
    if replication_factor > broker_count:
        raise KafkaError(
            f"Replication factor: {replication_factor} larger than available brokers: {broker_count}.",
            error_code=ErrorCode.INVALID_REPLICATION_FACTOR,
        )
