"""Partitions over brokers: elect leaders, move replicas from broker to broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from odradek.client.admin.base import AdminBase, ResultOrError, by_topic, outcome_of, refuse_wrong_controller
from odradek.client.broker_errors import check
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


class ElectionType(IntEnum):
    """Which replica becomes the leader, numbered as on the wire."""

    PREFERRED = 0
    """The first replica, if it is in sync."""

    UNCLEAN = 1
    """Any live replica, where no replica in sync is alive; records may be lost."""


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """A reassignment under way; `replicas` has those that are added and those that are removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas when it is done."""
        return tuple(one for one in self.replicas if one not in self.removing_replicas)


class PartitionAdmin(AdminBase):
    """The calls about leaders and replicas."""

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ResultOrError[None]]:
        """Elect a leader for each of these partitions, or for all.

        ElectionNotNeeded is among the results of named partitions; of all, only those that changed or failed.
        """
        rows = None
        if partitions is not None:
            rows = [
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        request = ElectLeadersRequest(
            election_type=int(election_type),
            topic_partitions=rows,
            timeout_ms=self.config.request_timeout_ms,
        )

        async def attempt() -> dict[TopicPartition, ResultOrError[None]]:
            response = await self.brokers.send_to_controller(request, ElectLeadersResponse)
            check(response.error_code)
            outcomes = {
                TopicPartition(topic.topic, row.partition_id): outcome_of(
                    None, row.error_code, row.error_message
                )
                for topic in response.replica_election_results
                for row in topic.partition_result
            }
            refuse_wrong_controller(outcomes)
            return outcomes

        return await self.brokers.retry("electing leaders", attempt, timeout_ms=timeout_ms)

    async def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ResultOrError[None]]:
        """Move partitions to these brokers, the preferred leader first; None cancels a reassignment."""
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self.config.request_timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=_reassignment_rows(reassignments),
        )

        async def attempt() -> dict[TopicPartition, ResultOrError[None]]:
            response = await self.brokers.send_to_controller(request, AlterPartitionReassignmentsResponse)
            check(response.error_code, response.error_message)
            outcomes = {
                TopicPartition(topic.name, row.partition_index): outcome_of(
                    None, row.error_code, row.error_message
                )
                for topic in response.responses
                for row in topic.partitions
            }
            refuse_wrong_controller(outcomes)
            return outcomes

        return await self.brokers.retry("reassigning partitions", attempt, timeout_ms=timeout_ms)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The reassignments under way, of these partitions or of all."""
        rows = None
        if partitions is not None:
            rows = [
                ListPartitionReassignmentsRequest.Topics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=self.config.request_timeout_ms, topics=rows)

        async def attempt() -> dict[TopicPartition, PartitionReassignment]:
            response = await self.brokers.send_to_controller(request, ListPartitionReassignmentsResponse)
            check(response.error_code, response.error_message)
            return {
                TopicPartition(topic.name, row.partition_index): PartitionReassignment(
                    tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
                )
                for topic in response.topics
                for row in topic.partitions
            }

        return await self.brokers.retry("listing reassignments", attempt, timeout_ms=timeout_ms)


def _reassignment_rows(
    reassignments: Mapping[TopicPartition, Sequence[int] | None],
) -> list[Any]:
    row_class = AlterPartitionReassignmentsRequest.Topics
    rows: dict[str, Any] = {}
    for partition, replicas in sorted(reassignments.items(), key=lambda item: item[0]):
        row = rows.setdefault(partition.topic, row_class(name=partition.topic, partitions=[]))
        row.partitions.append(
            row_class.Partitions(
                partition_index=partition.partition, replicas=None if replicas is None else list(replicas)
            )
        )
    return list(rows.values())
