"""Replicas that a plan puts into given log directories: started, and their states."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from odradek.cli.connecting import Failed
from odradek.cli.partitions.reassign.plan import Replica
from odradek.common.ids import TopicPartition

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin

_RETRY_S = 0.1


class MoveState(NamedTuple):
    """Where a replica is, where it is being moved to, and where the plan wants it."""

    target: str
    current: str | None
    future: str | None

    @property
    def is_done(self) -> bool:
        """Whether nothing moves any more."""
        return self.future is None

    def line(self, replica: Replica) -> str:
        """The state in the words of kafka-reassign-partitions.sh."""
        partition, broker = replica
        if self.current is None:
            return f"Partition {partition} cannot be found in any live log directory on broker {broker}."
        if self.future is None and self.current == self.target:
            return f"Reassignment of replica {replica} completed successfully."
        if self.future is None:
            return (
                f"Partition {partition} on broker {broker} is not being moved from log dir {self.current} to "
                f"{self.target}."
            )
        if self.future == self.target:
            return f"Reassignment of replica {replica} is still in progress."
        return (
            f"Partition {partition} on broker {broker} is being moved to log dir {self.future} instead of "
            f"{self.target}."
        )


def move_states(admin: Admin, targets: Mapping[Replica, str]) -> dict[Replica, MoveState]:
    """The states of these replicas."""
    if not targets:
        return {}
    current, future = _present(admin, targets)
    return {
        replica: MoveState(target, current.get(replica), future.get(replica))
        for replica, target in sorted(
            targets.items(), key=lambda item: (item[0].broker_id, item[0].partition)
        )
    }


def _present(admin: Admin, targets: Mapping[Replica, str]) -> tuple[dict[Replica, str], dict[Replica, str]]:
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    alive = {broker.broker_id for broker in admin.describe_cluster().brokers}
    brokers = alive & {replica.broker_id for replica in targets}
    topics = {replica.partition.topic for replica in targets}
    current: dict[Replica, str] = {}
    future: dict[Replica, str] = {}
    for broker_id, directories in admin.describe_log_dirs(brokers, topics=topics).items():
        for path, directory in directories.items():
            if isinstance(directory, BrokerError):
                continue
            for partition, info in directory.replicas.items():
                (future if info.is_future else current)[Replica(partition, broker_id)] = path
    return current, future


def start_moves(admin: Admin, targets: Mapping[Replica, str], timeout_ms: int) -> Iterator[str]:
    """Start these moves; yields a line for each. Waits for replicas that their brokers do not have yet."""
    from odradek.client.broker_errors import ReplicaNotAvailable  # noqa: PLC0415

    deadline = time.monotonic() + timeout_ms / 1000
    pending = dict(targets)
    while pending:
        paths: dict[TopicPartition, dict[int, str]] = {}
        for replica, path in pending.items():
            paths.setdefault(replica.partition, {})[replica.broker_id] = path
        for (partition, broker), outcome in sorted(admin.alter_replica_log_dirs(paths).items()):
            replica = Replica(partition, broker)
            if isinstance(outcome, ReplicaNotAvailable):
                continue
            if outcome is not None:
                raise Failed(f"Failed to alter dir for {replica}: {outcome}")
            yield (
                f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                f"{partition.topic}-{partition.partition} with broker {broker} "
            )
        if pending and time.monotonic() > deadline:
            plural = "" if len(pending) == 1 else "s"
            raise Failed(
                f"Timed out before log directory move{plural} could be started for: "
                + ",".join(map(str, sorted(pending)))
            )
        if pending:
            time.sleep(_RETRY_S)
