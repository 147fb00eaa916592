"""Transactions: list and describe them, abort one in a partition, end those of a transactional id."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from odradek.client.admin.base import ResultOrError, outcome_of, require
from odradek.client.admin.by_coordinator import CoordinatorAdmin
from odradek.client.broker_errors import broker_error, check
from odradek.client.coordinators import KeyType
from odradek.client.errors import UnsupportedByBroker
from odradek.client.metadata import Node
from odradek.client.network.connection import BrokerConnection
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_FIRST_WITH_DURATION = 1
_FIRST_WITH_PATTERN = 2
_NO_DURATION = -1


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transactional id, and the broker that coordinates it."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """The state of a transactional id at its coordinator; `start_time_ms` is None without a transaction."""

    transactional_id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


class TransactionAdmin(CoordinatorAdmin):
    """The calls about transactions."""

    async def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids by name, or those that match.

        `duration_ms`: only transactions that have been open for longer; `transactional_id_pattern`: a regular
        expression (RE2) that the broker matches.
        """

        async def attempt() -> list[TransactionListing]:
            metadata = await self.brokers.ensure_fresh()
            request = ListTransactionsRequest(
                state_filters=list(states), producer_id_filters=list(producer_ids)
            )
            if duration_ms is not None:
                request.duration_filter = duration_ms
            if transactional_id_pattern is not None:
                request.transactional_id_pattern = transactional_id_pattern
            listings = [self._list_transactions_at(node_id, request) for node_id in metadata.nodes]
            found = [one for response in await asyncio.gather(*listings) for one in response]
            return sorted(found, key=lambda one: one.transactional_id)

        return await self.brokers.retry("listing transactions", attempt, timeout_ms=timeout_ms)

    async def _list_transactions_at(
        self, node_id: int, request: ListTransactionsRequest
    ) -> list[TransactionListing]:
        connection = await self.brokers.connection(node_id)
        _check_version(connection, request)
        response = await connection.send_request(request, ListTransactionsResponse)
        check(response.error_code)
        if response.unknown_state_filters:
            names = ", ".join(response.unknown_state_filters)
            raise broker_error(ErrorCode.INVALID_REQUEST, f"no state of transactions is called {names}")
        return [
            TransactionListing(row.transactional_id, node_id, row.producer_id, row.transaction_state)
            for row in response.transaction_states
        ]

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ResultOrError[TransactionDescription]]:
        """The state of each transactional id; TRANSACTIONAL_ID_NOT_FOUND if the coordinator has none."""

        async def call(node: Node, connection: BrokerConnection, name: str) -> TransactionDescription:
            request = DescribeTransactionsRequest(transactional_ids=[name])
            response = await connection.send_request(request, DescribeTransactionsResponse)
            (row,) = response.transaction_states
            check(row.error_code, name)
            return _description(node.node_id, row)

        return await self._by_coordinator(
            "describing transactions", transactional_ids, call, timeout_ms, KeyType.TRANSACTION
        )

    async def abort_transaction(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = 0,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """Write an abort marker into one partition, for a transaction that its coordinator has forgotten."""

        async def call(
            connection: BrokerConnection, _: list[TopicPartition]
        ) -> dict[TopicPartition, ResultOrError[None]]:
            marker = WriteTxnMarkersRequest.Markers(
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transaction_result=False,
                topics=[
                    WriteTxnMarkersRequest.Markers.Topics(
                        name=partition.topic, partition_indexes=[partition.partition]
                    )
                ],
                coordinator_epoch=coordinator_epoch,
            )
            response = await connection.send_request(
                WriteTxnMarkersRequest(markers=[marker]), WriteTxnMarkersResponse
            )
            (row,) = response.markers[0].topics[0].partitions
            return {partition: outcome_of(None, row.error_code, str(partition))}

        outcomes = await self._by_leader("aborting a transaction", [partition], call, timeout_ms)
        require(outcomes[partition])

    async def force_terminate_transaction(
        self, transactional_id: str, *, timeout_ms: int | None = None
    ) -> None:
        """Abort the open transaction of a transactional id, and fence its producer."""

        async def call(_: Node, connection: BrokerConnection) -> None:
            request = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=self.config.request_timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
            )
            check(
                (await connection.send_request(request, InitProducerIdResponse)).error_code, transactional_id
            )

        await self._at_coordinator(
            "terminating a transaction", transactional_id, call, timeout_ms, KeyType.TRANSACTION
        )


def _check_version(connection: BrokerConnection, request: ListTransactionsRequest) -> None:
    """UnsupportedByBroker for a filter that an old broker would ignore."""
    needed = 0
    if request.duration_filter != _NO_DURATION:
        needed = _FIRST_WITH_DURATION
    if request.transactional_id_pattern is not None:
        needed = _FIRST_WITH_PATTERN
    version = connection.versions.best(ApiKey.LIST_TRANSACTIONS)
    if version < needed:
        raise UnsupportedByBroker(
            connection.address,
            "LIST_TRANSACTIONS",
            f"{needed} or later for this filter",
            f"version {version}",
        )


def _description(
    coordinator_id: int, row: DescribeTransactionsResponse.TransactionStates
) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=row.transactional_id,
        coordinator_id=coordinator_id,
        producer_id=row.producer_id,
        producer_epoch=row.producer_epoch,
        state=row.transaction_state,
        timeout_ms=row.transaction_timeout_ms,
        start_time_ms=row.transaction_start_time_ms if row.transaction_start_time_ms >= 0 else None,
        partitions=frozenset(
            TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions
        ),
    )
