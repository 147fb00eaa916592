"""Asks the transaction coordinator whether partitions are part of a transaction, before its first batch.

| request | what the coordinator is asked (AddPartitionsToTxn) | a partition that is not part of it |
| --- | --- | --- |
| Produce 3-10, TxnOffsetCommit 0-3 | to verify | INVALID_TXN_STATE |
| Produce 11, TxnOffsetCommit 4 | to verify | TRANSACTION_ABORTABLE |
| Produce 12-, TxnOffsetCommit 5 | to add it (transactions v2) | is added |

What the client should simply try again (no coordinator, loading, no connection) is NOT_ENOUGH_REPLICAS, which
every client retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from odradek.broker.requests.add_partitions_to_txn_manager import Codes, TransactionPartitions
from odradek.broker.requests.services import Services
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.partitioning import partition_for
from odradek.log.errors import InvalidProducerEpoch
from odradek.log.producers.producer_states import Verification
from odradek.replication.partition import Partition
from odradek.transactions.partitions import TRANSACTION_STATE
from odradek.transactions.transaction import ProducerIdAndEpoch

ADD_FROM, GENERIC_ERROR_FROM = 12, 11
FIRST_PAUSE_MS = 1

_RETRIED_BY_CLIENTS = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class TransactionOperation(Enum):
    """What the version of a request allows."""

    VERIFY_OLD_ERRORS = "verify; the client does not know TRANSACTION_ABORTABLE"
    VERIFY = "verify"
    ADD = "add the partition"


class UnverifiedBatch(NamedTuple):
    """A batch that begins a transaction in its partition, with the row of the response that reports on it."""

    partition: Partition
    records: memoryview
    row: Any
    producer_id: int
    producer_epoch: int
    verification: Verification
    leader_epoch: int


def supported_operation(produce_version: int) -> TransactionOperation:
    """What a Produce request of that version asks for."""
    if produce_version >= ADD_FROM:
        return TransactionOperation.ADD
    if produce_version >= GENERIC_ERROR_FROM:
        return TransactionOperation.VERIFY
    return TransactionOperation.VERIFY_OLD_ERRORS


async def verify(
    services: Services,
    transactional_id: str,
    operation: TransactionOperation,
    batches: Sequence[UnverifiedBatch],
) -> list[KafkaError | None]:
    """For each batch why it must not be appended, or None: then it must be, before anything is awaited."""
    by_producer: dict[ProducerIdAndEpoch, list[TopicPartition]] = {}
    for batch in batches:
        producer = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
        by_producer.setdefault(producer, []).append(batch.partition.topic_partition)
    codes = {
        producer: await ask_coordinator(services, transactional_id, producer, operation, partitions)
        for producer, partitions in by_producer.items()
    }
    return [_error_of(batch, codes) for batch in batches]


def _error_of(
    batch: UnverifiedBatch, codes: Mapping[ProducerIdAndEpoch, Mapping[TopicPartition, ErrorCode]]
) -> KafkaError | None:
    partition = batch.partition
    if partition.leader_epoch != batch.leader_epoch:
        return KafkaError(
            f"{partition.topic_partition} has another leader epoch",
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        )
    producers = partition.log.producers
    code = codes[ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)][partition.topic_partition]
    if code is not ErrorCode.NONE:
        return KafkaError(f"{partition.topic_partition}: {code.name}", error_code=code)
    if not producers.is_valid(batch.producer_id, batch.verification) and not (
        producers.has_ongoing_transaction(batch.producer_id, batch.producer_epoch)
    ):
        return KafkaError("the transaction was ended meanwhile", error_code=ErrorCode.INVALID_TXN_STATE)
    return None


async def ask_coordinator(
    services: Services,
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    operation: TransactionOperation,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    """The error code of each partition, as producers get it; NONE if a batch may begin the transaction."""
    config = services.config()
    if not config.transaction_partition_verification_enable and operation is not TransactionOperation.ADD:
        return dict.fromkeys(partitions, ErrorCode.NONE)
    loop = services.loop
    deadline = loop.time() + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
    is_verify_only = operation is not TransactionOperation.ADD
    wanted = TransactionPartitions(transactional_id, producer, is_verify_only, frozenset(partitions))
    for pause_s in pauses_s(config.add_partitions_to_txn_retry_backoff_ms):
        if not is_verify_only:
            await _wait_for_completion(services, transactional_id, deadline - loop.time())
        codes = await _ask(services, wanted)
        # With transactions v2 the markers of the last transaction may still be written.
        is_early = not is_verify_only and ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        if not is_early or loop.time() + pause_s > deadline:
            break
        await asyncio.sleep(pause_s)
    return {partition: _as_producers_get(code, operation) for partition, code in codes.items()}


def pauses_s(longest_ms: int) -> Iterator[float]:
    """The pauses between attempts: markers are usually written within a millisecond or two."""
    pause_ms = min(FIRST_PAUSE_MS, longest_ms)
    while True:
        yield pause_ms / 1000
        pause_ms = min(pause_ms * 2, longest_ms)


async def _wait_for_completion(services: Services, transactional_id: str, timeout_s: float) -> None:
    """Wait for the end of the id's last transaction, if this broker is its coordinator.

    Here and not in the handler of AddPartitionsToTxn, where other transactions would wait behind it.
    """
    if timeout_s > 0 and _coordinator_of(services, transactional_id) == services.broker_id:
        with services.request_limit.parked():
            await services.transactions.wait_for_completion(transactional_id, timeout_s)


async def _ask(services: Services, wanted: TransactionPartitions) -> Codes:
    coordinator = _coordinator_of(services, wanted.transactional_id)
    if coordinator < 0:
        return dict.fromkeys(wanted.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    # It waits for another request of a broker: the limit of open requests must not hold that one up.
    with services.request_limit.parked():
        return await services.add_partitions_to_txn_manager.add_or_verify(coordinator, wanted)


def _coordinator_of(services: Services, transactional_id: str) -> int:
    topic = services.image.topics.get(TRANSACTION_STATE)
    if topic is None:
        return -1
    partition = topic.partitions.get(partition_for(transactional_id, len(topic.partitions)))
    return -1 if partition is None else partition.leader


def _as_producers_get(code: ErrorCode, operation: TransactionOperation) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return InvalidProducerEpoch.error_code
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and operation is TransactionOperation.ADD:
        return code
    if code in _RETRIED_BY_CLIENTS:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code is ErrorCode.TRANSACTION_ABORTABLE and operation is TransactionOperation.VERIFY_OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    return code
