"""Transactions as records of `__transaction_state`, in Kafka's format.

key     type 0     TransactionLogKey: the transactional id
value   version 0  until transaction.version 1 is finalized; 1 has tagged fields. Null: the id has expired
"""

from __future__ import annotations

from collections import defaultdict

from odradek.common.ids import TopicPartition
from odradek.coordinator.record_codec import RecordCodec
from odradek.coordinator.result import CoordinatorRecord
from odradek.protocol.errors import ProtocolError
from odradek.protocol.messages import TransactionLogKey, TransactionLogValue
from odradek.transactions.transaction import Transaction, TransactionState

CODEC = RecordCodec("transaction-state.txt")
FLEXIBLE_FROM = 1
"""The transaction.version from which values may have tagged fields."""

_Partitions = TransactionLogValue.TransactionPartitions


def transaction_record(transaction: Transaction, server_version: int) -> CoordinatorRecord:
    """The record with the present state of a transactional id."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_partitions=_partitions(transaction),
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
    )
    version = 1 if server_version >= FLEXIBLE_FROM else 0
    if version > 0:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return CODEC.encode(TransactionLogKey(transactional_id=transaction.transactional_id), value, version)


def expiry_record(transactional_id: str) -> CoordinatorRecord:
    """The record that deletes a transactional id."""
    return CODEC.encode(TransactionLogKey(transactional_id=transactional_id), None)


def _partitions(transaction: Transaction) -> list[_Partitions] | None:
    if transaction.state is TransactionState.EMPTY:
        return None
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(transaction.partitions):
        by_topic[topic].append(partition)
    return [_Partitions(topic=topic, partition_ids=indexes) for topic, indexes in by_topic.items()]


def transaction_of(transactional_id: str, value: TransactionLogValue) -> Transaction:
    """The state in a record."""
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise ProtocolError(f"transaction status {value.transaction_status}") from None
    return Transaction(
        transactional_id,
        producer_id=value.producer_id,
        timeout_ms=value.transaction_timeout_ms,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
