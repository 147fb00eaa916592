"""The transactions of one partition of `__transaction_state`, replayed from its records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from odradek.coordinator.result import CoordinatorRecord, Response, Result, StartTimer
from odradek.records.batch import HEADER_SIZE
from odradek.transactions.records import CODEC, expiry_record, transaction_of, transaction_record
from odradek.transactions.settings import TransactionSettings
from odradek.transactions.transaction import Transaction

logger = logging.getLogger(__name__)

# The records of one step are one batch; other tasks run between the steps.
CHANGES_PER_STEP = 500
RECORD_OVERHEAD = 21
"""At most so many bytes of a record in a batch are neither its key nor its value."""


@dataclass(frozen=True, slots=True)
class TimeoutTimer:
    """Fires when open transactions are checked for their time-out."""


@dataclass(frozen=True, slots=True)
class ExpiryTimer:
    """Fires when unused transactional ids are removed."""


@dataclass(slots=True)
class TransactionCounters:
    """Ends that this broker has decided; owned by the service, counted by its shards."""

    committed: int = 0
    aborted: int = 0


class TransactionsState:
    """Transactions by transactional id. Owned by its shard: operations read it, their results change it.

    `on_prepared` is called when the end of a transaction has been decided, here or before a restart: its
    markers must be written. `on_completed` is called with the id when they are, for who waits for that.
    """

    def __init__(
        self,
        settings: Callable[[], TransactionSettings],
        on_prepared: Callable[[Transaction], None],
        on_completed: Callable[[str], None],
        counters: TransactionCounters,
    ) -> None:
        self._settings = settings
        self._on_prepared = on_prepared
        self._on_completed = on_completed
        self._counters = counters
        self.transactions: dict[str, Transaction] = {}

    @property
    def settings(self) -> TransactionSettings:
        """The current settings."""
        return self._settings()

    def find(self, transactional_id: str) -> Transaction | None:
        """The transaction of that id, if there is one."""
        return self.transactions.get(transactional_id)

    def change(self, transaction: Transaction, response: Response) -> Result[Response]:
        """Write the new state of one transaction."""
        return self._changes([transaction], response)

    def _changes(
        self, transactions: list[Transaction], response: Response, *timers: StartTimer
    ) -> Result[Response]:
        version = self.settings.transaction_version

        def keep() -> None:
            for transaction in transactions:
                self._keep(transaction)

        records = tuple(transaction_record(transaction, version) for transaction in transactions)
        return Result(response=response, records=records, on_written=keep, timers=timers)

    def _keep(self, transaction: Transaction) -> None:
        self.transactions[transaction.transactional_id] = transaction
        if transaction.is_prepared:
            if transaction.is_commit:
                self._counters.committed += 1
            else:
                self._counters.aborted += 1
            self._on_prepared(transaction)
        elif transaction.is_completed:
            self._on_completed(transaction.transactional_id)

    # Replay

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        """Apply one record of the log."""
        decoded = CODEC.decode(*record)
        if decoded is None:
            logger.warning("skipped a record of unknown type: key %s", record.key.hex())
            return
        key: Any = decoded.key
        value: Any = decoded.value
        if value is None:
            self.transactions.pop(key.transactional_id, None)
        else:
            self.transactions[key.transactional_id] = transaction_of(key.transactional_id, value)

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        """The records of this topic are never part of a transaction."""

    # Time

    def on_loaded(self, now_ms: int) -> Result[None]:
        """Write the markers of all transactions whose end was decided, and start the timers."""
        for transaction in self.transactions.values():
            if transaction.is_prepared:
                self._on_prepared(transaction)
        # At once, because a coordinator that keeps moving would never come to its first check.
        return Result(timers=(StartTimer(TimeoutTimer(), 0), self._next_expiry()))

    def on_timer(self, key: TimeoutTimer | ExpiryTimer, now_ms: int) -> Result[None]:
        """Abort transactions that are open for too long, or remove unused ids."""
        return self._abort_timed_out(now_ms) if isinstance(key, TimeoutTimer) else self._expire(now_ms)

    def _abort_timed_out(self, now_ms: int) -> Result[None]:
        version = self.settings.transaction_version
        aborted = (
            one.fenced(version, now_ms) for one in self.transactions.values() if one.is_timed_out(now_ms)
        )
        step, is_last = self._step((one, transaction_record(one, version)) for one in aborted)
        for transaction in step:
            logger.info(
                "aborting the transaction of %s, producer id %d: it was open for more than %d ms",
                transaction.transactional_id,
                transaction.producer_id,
                transaction.timeout_ms,
            )
        timer = self._next_timeout_check() if is_last else StartTimer(TimeoutTimer(), 0)
        return self._changes(step, None, timer)

    def _expire(self, now_ms: int) -> Result[None]:
        expiration_ms = self.settings.expiration_ms
        unused = (one for one in self.transactions.values() if one.is_expired(now_ms, expiration_ms))
        step, is_last = self._step((one, expiry_record(one.transactional_id)) for one in unused)
        timer = self._next_expiry() if is_last else StartTimer(ExpiryTimer(), 0)
        # Without `on_written` the records are replayed, which removes the ids.
        return Result(records=tuple(expiry_record(one.transactional_id) for one in step), timers=(timer,))

    def _step(
        self, changes: Iterable[tuple[Transaction, CoordinatorRecord]]
    ) -> tuple[list[Transaction], bool]:
        """The changes that one batch can hold, and whether they are the last ones.

        One that no batch can hold is left out, so that it keeps none of the others waiting.
        """
        step: list[Transaction] = []
        left_bytes = max_bytes = self.settings.max_batch_bytes - HEADER_SIZE
        for transaction, record in changes:
            record_bytes = len(record.key) + len(record.value or b"") + RECORD_OVERHEAD
            if record_bytes > max_bytes:
                logger.error(
                    "the state of %s takes %d bytes: raise max.message.bytes of __transaction_state",
                    transaction.transactional_id,
                    record_bytes,
                )
            elif record_bytes > left_bytes or len(step) == CHANGES_PER_STEP:
                return step, False
            else:
                step.append(transaction)
                left_bytes -= record_bytes
        return step, True

    def _next_timeout_check(self) -> StartTimer:
        return StartTimer(TimeoutTimer(), self.settings.abort_check_interval_ms)

    def _next_expiry(self) -> StartTimer:
        return StartTimer(ExpiryTimer(), self.settings.expiry_check_interval_ms)
