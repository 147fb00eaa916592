"""The requests of a transaction, each to its coordinator, repeated until the timeout.

In transactions v1 a client adds partitions (AddPartitionsToTxn) and groups (AddOffsetsToTxn) before it uses
them. In v2 (KIP-890, the finalized feature `transaction.version` is 2) brokers add them, and EndTxn returns
the id and the epoch of the next transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TypeVar

from odradek.client.broker_errors import broker_error, check
from odradek.client.committed_offsets import ConsumerGroupMetadata, OffsetAndMetadata
from odradek.client.coordinators import Coordinators, KeyType
from odradek.client.errors import BrokerError, ClientError
from odradek.client.network.brokers import Brokers
from odradek.client.network.connection import BrokerConnection
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

FEATURE = "transaction.version"
NO_PRODUCER = ProducerId(-1, -1)

_FIRST_WITH_V2 = 2
_LAST_ADD_PARTITIONS_OF_CLIENTS = 3
_LAST_END_OF_V1 = 4
_LAST_OFFSET_COMMIT_OF_V1 = 4
_FIRST_OFFSET_COMMIT_WITH_MEMBERS = 3
_FIRST_OFFSET_COMMIT_WITH_EPOCHS = 2
_FIRST_INIT_WITH_EPOCH = 3
_PURPOSE = "transactions"
_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})

Result = TypeVar("Result")


def concurrent_pause_ms(attempts: int) -> int:
    """The pause while the coordinator still writes the markers of the previous transaction: 1 ms to 16 ms."""
    return 1 << min(attempts, 4)


class TransactionRequests:
    """The requests for one transactional id. Lives on the loop of its brokers."""

    def __init__(self, brokers: Brokers, transactional_id: str, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.uses_v2 = False
        """Whether the present transaction is one of v2; a changed feature counts from the next one on."""
        self._is_chosen = False
        self._has_v2 = False
        self._brokers = brokers
        self._coordinators = Coordinators(brokers)
        self._timeout_ms = timeout_ms

    async def connect(self) -> None:
        """Find the coordinator, and which version of transactions it has."""

        async def no_result(_: BrokerConnection) -> None:
            return None

        await self._at_coordinator("finding the transaction coordinator", no_result)
        self._choose_version()

    async def ensure_version(self) -> None:
        """Find out the version of the present transaction, unless an earlier request has done so."""
        if not self._is_chosen:
            await self.connect()

    def _choose_version(self) -> None:
        """The next transaction has the version that the cluster had at the last request.

        An EndTxn whose response was lost must be repeated in its version: that of v2 has raised the epoch.
        """
        self.uses_v2, self._is_chosen = self._has_v2, True

    async def init_producer_id(
        self, transaction_timeout_ms: int, current: ProducerId = NO_PRODUCER
    ) -> ProducerId:
        """A new id and epoch; earlier producers are fenced, and their open transaction is aborted.

        With `current` only its epoch is raised (KIP-360): PRODUCER_FENCED if another one has taken over.
        """

        async def call(connection: BrokerConnection) -> ProducerId:
            request = InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=transaction_timeout_ms
            )
            if connection.versions.best(ApiKey.INIT_PRODUCER_ID) >= _FIRST_INIT_WITH_EPOCH:
                request.producer_id, request.producer_epoch = current
            response = await connection.send_request(request, InitProducerIdResponse)
            check(response.error_code)
            return ProducerId(response.producer_id, response.producer_epoch)

        producer = await self._at_coordinator("initializing transactions", call)
        self._choose_version()
        return producer

    async def add_partitions(self, producer: ProducerId, partitions: Collection[TopicPartition]) -> None:
        """Add partitions to the transaction (v1)."""
        by_topic: dict[str, list[int]] = {}
        for partition in sorted(partitions):
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        topic_class = AddPartitionsToTxnRequest.V3AndBelowTopics

        async def call(connection: BrokerConnection) -> None:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.epoch,
                v3_and_below_topics=[
                    topic_class(name=name, partitions=numbers) for name, numbers in by_topic.items()
                ],
            )
            response = await connection.send_request(
                request, AddPartitionsToTxnResponse, max_version=_LAST_ADD_PARTITIONS_OF_CLIENTS
            )
            codes = {
                TopicPartition(topic.name, row.partition_index): row.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for row in topic.results_by_partition
            }
            _check_all(codes)

        await self._at_coordinator("adding partitions to the transaction", call)

    async def add_offsets(self, producer: ProducerId, group_id: str) -> None:
        """Add the offsets of a group to the transaction (v1)."""

        async def call(connection: BrokerConnection) -> None:
            request = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group_id,
            )
            check((await connection.send_request(request, AddOffsetsToTxnResponse)).error_code)

        await self._at_coordinator("adding a group to the transaction", call)

    async def commit_offsets(
        self,
        producer: ProducerId,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        """Write offsets of a group that count when the transaction is committed."""

        async def call(connection: BrokerConnection) -> None:
            highest = None if self.uses_v2 else _LAST_OFFSET_COMMIT_OF_V1
            version = connection.versions.best(ApiKey.TXN_OFFSET_COMMIT, highest)
            request = self._offset_commit(version, producer, group, offsets)
            response = await connection.send_request(request, TxnOffsetCommitResponse, max_version=highest)
            codes = {
                TopicPartition(topic.name, row.partition_index): row.error_code
                for topic in response.topics
                for row in topic.partitions
            }
            _check_all(codes)

        await self._retry(
            "committing offsets in the transaction", call, group.group_id, KeyType.GROUP, self._timeout_ms
        )

    def _offset_commit(
        self,
        version: int,
        producer: ProducerId,
        group: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> TxnOffsetCommitRequest:
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
        )
        if version >= _FIRST_OFFSET_COMMIT_WITH_MEMBERS:
            request.generation_id = group.generation_id
            request.member_id = group.member_id
            request.group_instance_id = group.group_instance_id
        topics: dict[str, TxnOffsetCommitRequest.Topics] = {}
        for partition, committed in offsets.items():
            row = TxnOffsetCommitRequest.Topics.Partitions(
                partition_index=partition.partition,
                committed_offset=committed.offset,
                committed_metadata=committed.metadata,
            )
            if version >= _FIRST_OFFSET_COMMIT_WITH_EPOCHS:
                row.committed_leader_epoch = committed.leader_epoch
            topic = topics.setdefault(partition.topic, TxnOffsetCommitRequest.Topics(name=partition.topic))
            topic.partitions.append(row)
        request.topics = list(topics.values())
        return request

    async def end(self, producer: ProducerId, *, commits: bool) -> ProducerId:
        """Commit or abort; returns the id and the epoch of the next transaction."""

        async def call(connection: BrokerConnection) -> ProducerId:
            request = EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                committed=commits,
            )
            response = await connection.send_request(
                request, EndTxnResponse, max_version=None if self.uses_v2 else _LAST_END_OF_V1
            )
            check(response.error_code)
            return (
                producer
                if response.producer_id < 0
                else ProducerId(response.producer_id, response.producer_epoch)
            )

        following = await self._at_coordinator("committing" if commits else "aborting the transaction", call)
        self._choose_version()
        return following

    async def _at_coordinator(
        self, what: str, call: Callable[[BrokerConnection], Awaitable[Result]]
    ) -> Result:
        def call_coordinator(connection: BrokerConnection) -> Awaitable[Result]:
            self._has_v2 = connection.versions.features.get(FEATURE, 0) >= _FIRST_WITH_V2
            return call(connection)

        return await self._retry(
            what, call_coordinator, self.transactional_id, KeyType.TRANSACTION, self._timeout_ms
        )

    async def _retry(
        self,
        what: str,
        call: Callable[[BrokerConnection], Awaitable[Result]],
        key: str,
        key_type: KeyType,
        timeout_ms: int,
    ) -> Result:
        brokers, coordinators = self._brokers, self._coordinators

        async def attempt() -> Result:
            await brokers.ensure_fresh()
            node_id = await coordinators.find(key, key_type)
            try:
                connection = await brokers.connection(node_id, _PURPOSE)
                return await _call_until_completed(call, connection)
            except ClientError:
                coordinators.forget(key, key_type)
                raise
            except BrokerError as error:
                if error.error_code in _MOVED:
                    coordinators.forget(key, key_type)
                raise

        return await brokers.retry(what, attempt, timeout_ms=timeout_ms)


async def _call_until_completed(
    call: Callable[[BrokerConnection], Awaitable[Result]], connection: BrokerConnection
) -> Result:
    """Repeat the request while the previous transaction is being completed; the caller has a time-out."""
    attempts = 0
    while True:
        try:
            return await call(connection)
        except BrokerError as error:
            if error.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                raise
        await asyncio.sleep(concurrent_pause_ms(attempts) / 1000)
        attempts += 1


def _check_all(codes: Mapping[TopicPartition, int]) -> None:
    """Raise the error of a partition; one that is not retriable goes first."""
    errors = [broker_error(code, str(partition)) for partition, code in codes.items() if code]
    for error in sorted(errors, key=_order):
        raise error


def _order(error: BrokerError) -> int:
    """OPERATION_NOT_ATTEMPTED only says that another partition has the error."""
    if error.error_code == ErrorCode.OPERATION_NOT_ATTEMPTED:
        return 2
    return int(error.is_retriable)
