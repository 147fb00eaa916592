"""The producers of a partition: idempotent and transactional ones, with their sequences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from odradek.client.admin.base import AdminBase, ResultOrError, by_topic, outcome_of
from odradek.client.network.connection import BrokerConnection
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import DescribeProducersRequest, DescribeProducersResponse

_NONE = -1


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The state of one producer at the leader."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


Producers = tuple[ProducerState, ...]


class ProducerAdmin(AdminBase):
    """The calls about producers."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, ResultOrError[Producers]]:
        """The active producers of each partition."""

        async def call(
            connection: BrokerConnection, group: list[TopicPartition]
        ) -> dict[TopicPartition, ResultOrError[Producers]]:
            rows = [
                DescribeProducersRequest.Topics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(group).items()
            ]
            response = await connection.send_request(
                DescribeProducersRequest(topics=rows), DescribeProducersResponse
            )
            return {
                TopicPartition(topic.name, row.partition_index): outcome_of(
                    tuple(_state(one) for one in row.active_producers), row.error_code, row.error_message
                )
                for topic in response.topics
                for row in topic.partitions
            }

        return await self._by_leader("describing producers", list(partitions), call, timeout_ms)


def _state(row: DescribeProducersResponse.Topics.Partitions.ActiveProducers) -> ProducerState:
    return ProducerState(
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        last_sequence=row.last_sequence,
        last_timestamp_ms=row.last_timestamp,
        coordinator_epoch=row.coordinator_epoch if row.coordinator_epoch != _NONE else None,
        current_transaction_start_offset=(
            row.current_txn_start_offset if row.current_txn_start_offset != _NONE else None
        ),
    )
