"""Transactions and the producers that run them."""

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
    """Time-outs, the topic of transaction states, producer ids."""

    transaction_max_timeout_ms: int = read_only(
        "transaction.max.timeout.ms",
        INT,
        900_000,
        "The longest time-out that a producer may ask for its transactions.",
        at_least(1),
        importance=HIGH,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = read_only(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often transactions are looked over for ones that have timed out.",
        at_least(1),
        importance=LOW,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = read_only(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        3_600_000,
        "How often transactional ids are looked over for ones that may be forgotten.",
        at_least(1),
        importance=LOW,
    )
    transactional_id_expiration_ms: int = read_only(
        "transactional.id.expiration.ms",
        INT,
        604_800_000,
        "How long an unused transactional id is remembered.",
        at_least(1),
        importance=HIGH,
    )
    transaction_partition_verification_enable: bool = cluster_wide(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a partition is checked to be in the transaction before it is appended to.",
        importance=LOW,
    )
    transaction_state_log_load_buffer_size: int = read_only(
        "transaction.state.log.load.buffer.size",
        INT,
        5_242_880,
        "Bytes read at a time when a coordinator loads its transactions.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_min_isr: int = read_only(
        "transaction.state.log.min.isr",
        INT,
        2,
        "Replicas in sync for a write to the topic of transactions; unless set, fitted to its replicas.",
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
    transaction_state_log_segment_bytes: int = read_only(
        "transaction.state.log.segment.bytes",
        INT,
        104_857_600,
        "Size of the segments of the topic of transactions.",
        at_least(1),
        importance=HIGH,
    )
    producer_id_expiration_check_interval_ms: int = read_only(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        "How often silent producers are looked for.",
        at_least(1),
        importance=LOW,
        is_internal=True,
    )
    add_partitions_to_txn_retry_backoff_ms: int = read_only(
        "add.partitions.to.txn.retry.backoff.ms",
        INT,
        20,
        "First pause before a broker asks the coordinator again whether a partition is in the transaction.",
        at_least(1),
        importance=HIGH,
    )
    add_partitions_to_txn_retry_backoff_max_ms: int = read_only(
        "add.partitions.to.txn.retry.backoff.max.ms",
        INT,
        100,
        "How long a broker keeps asking before it leaves the retry to the producer.",
        at_least(0),
        importance=HIGH,
    )
