"""The settings of the transaction coordinator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Limits and intervals; the defaults are Kafka's. `transaction_version` is the finalized feature.

    `max_batch_bytes`: the largest batch that the partition of `__transaction_state` takes.
    """

    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000
    abort_check_interval_ms: int = 10_000
    expiry_check_interval_ms: int = 3_600_000
    transaction_version: int = 0
    max_batch_bytes: int = 1_048_588
