"""What the commands of a reassignment read from the cluster: replicas, directories, brokers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.cli.connecting import Failed
from odradek.cli.partitions.reassign.plan import Plan, Replica
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin


def replicas_of(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of these partitions; Failed if a topic or a partition does not exist."""
    wanted = sorted(set(partitions))
    found = replicas_of_topics(admin, {partition.topic for partition in wanted})
    missing = [str(partition) for partition in wanted if partition not in found]
    if missing:
        raise Failed(f"Unable to find partition: {', '.join(missing)}")
    return {partition: found[partition] for partition in wanted}


def replicas_of_topics(admin: Admin, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of all partitions of these topics; Failed if one does not exist."""
    from odradek.client.admin.base import require  # noqa: PLC0415

    return {
        TopicPartition(name, one.partition): one.replicas
        for name, outcome in admin.describe_topics(topics).items()
        for one in require(outcome).partitions
    }


def log_dirs_of(admin: Admin, topics: Iterable[str]) -> dict[Replica, str]:
    """The directories of the replicas of these topics, of those brokers that answer."""
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    return {
        Replica(partition, broker_id): path
        for broker_id, directories in admin.describe_log_dirs(topics=topics).items()
        for path, directory in directories.items()
        if not isinstance(directory, BrokerError)
        for partition, replica in directory.replicas.items()
        if not replica.is_future
    }


def check_brokers(admin: Admin, plan: Plan) -> None:
    """Failed if the plan names a broker that does not exist."""
    known = {broker.broker_id for broker in admin.describe_cluster().brokers}
    for brokers in plan.replicas.values():
        for broker in brokers:
            if broker not in known:
                raise Failed(f"Unknown broker id {broker}")
