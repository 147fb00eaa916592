"""The errors of transaction requests, each with its error code."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError


class InvalidProducerIdMapping(KafkaError):
    """The transactional id is unknown, or has another producer id."""

    error_code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class ProducerFenced(KafkaError):
    """Another producer with this transactional id has begun a newer epoch."""

    error_code = ErrorCode.PRODUCER_FENCED

    def __init__(self, transactional_id: str, producer_epoch: int, current: int) -> None:
        self.producer_epoch = producer_epoch
        self.current = current
        super().__init__(f"{transactional_id}: epoch {producer_epoch} is fenced by {current}")


class ConcurrentTransactions(KafkaError):
    """The markers of the last transaction are still being written: try again."""

    error_code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidTxnState(KafkaError):
    """The transaction cannot be ended this way in its present state."""

    error_code = ErrorCode.INVALID_TXN_STATE


class TransactionalIdNotFound(KafkaError):
    """There is no such transactional id."""

    error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class InvalidTransactionTimeout(KafkaError):
    """The time-out is not positive, or above `transaction.max.timeout.ms`."""

    error_code = ErrorCode.INVALID_TRANSACTION_TIMEOUT

    def __init__(self, timeout_ms: int, max_timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.max_timeout_ms = max_timeout_ms
        super().__init__(f"transaction.timeout.ms={timeout_ms} is not in 1 to {max_timeout_ms}")
