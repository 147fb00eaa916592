"""Transactions: time-outs, the topic of their state, and how producers' partitions are verified."""

from __future__ import annotations

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    LOW,
    SHORT,
    cluster_wide,
    read_only,
    theme,
)
from odradek.common.config import at_least


@theme
class TransactionSettings:
    """The transaction coordinator, and the verification of batches before they are appended."""

    transaction_max_timeout_ms: int = read_only(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "The longest time-out that a transactional producer may ask for.",
        at_least(1),
        importance=HIGH,
    )
    transactional_id_expiration_ms: int = read_only(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "How long a transactional id is kept after its last transaction.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_num_partitions: int = read_only(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of the topic of transactions; must never change once it exists.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_replication_factor: int = read_only(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of the topic of transactions; unless set, not more than brokers alive at its creation.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_min_isr: int = read_only(
        "transaction.state.log.min.isr",
        INT,
        2,
        "Replicas in sync that the topic of transactions needs to be written.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_segment_bytes: int = read_only(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        "Size of the segments of the topic of transactions.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_load_buffer_size: int = read_only(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when a coordinator loads its transactions.",
        at_least(1),
        importance=HIGH,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = read_only(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often open transactions are checked for their time-out.",
        at_least(1),
        importance=LOW,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = read_only(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often transactional ids that have expired are removed.",
        at_least(1),
        importance=LOW,
    )
    transaction_partition_verification_enable: bool = cluster_wide(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether the leader asks the coordinator before the first batch of a transaction is appended.",
        importance=LOW,
    )
    add_partitions_to_txn_retry_backoff_ms: int = read_only(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "The longest pause before a leader asks again to add a partition while the last transaction is being "
        "ended; the first pause is 1 ms, each further one twice as long.",
        at_least(1),
        importance=HIGH,
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = read_only(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "How long a leader asks again to add a partition.",
        at_least(0),
        importance=HIGH,
    )
