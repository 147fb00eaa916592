"""Lists and describes transactions. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from odradek.coordinator.patterns import compiled
from odradek.transactions.errors import TransactionalIdNotFound
from odradek.transactions.state import TransactionsState
from odradek.transactions.transaction import Transaction, TransactionState

NO_DURATION = -1


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which transactions to list; an empty filter matches all of them.

    `min_duration_ms`: only those that have been running for longer. `pattern`: of the whole transactional id,
    compiled by RE2.
    """

    states: frozenset[TransactionState] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    min_duration_ms: int = NO_DURATION
    pattern: Any = None

    def matches(self, transaction: Transaction, now_ms: int) -> bool:
        """Whether a transaction is to be listed."""
        if self.states and transaction.state not in self.states:
            return False
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.min_duration_ms >= 0 and now_ms - transaction.start_ms <= self.min_duration_ms:
            return False
        return self.pattern is None or self.pattern.fullmatch(transaction.transactional_id) is not None


class TransactionListing(NamedTuple):
    """One listed transaction."""

    transactional_id: str
    producer_id: int
    state: TransactionState


def pattern_of(text: str | None) -> Any:
    """The compiled pattern; none for null or an empty text. INVALID_REGULAR_EXPRESSION if it is none."""
    return compiled(text, "TransactionalIdPattern") if text else None


def list_transactions(
    state: TransactionsState, wanted: TransactionFilter, now_ms: int
) -> list[TransactionListing]:
    """The transactions that the filter matches."""
    return [
        TransactionListing(one.transactional_id, one.producer_id, one.state)
        for one in state.transactions.values()
        if wanted.matches(one, now_ms)
    ]


def describe(state: TransactionsState, transactional_id: str) -> Transaction:
    """One transaction; TRANSACTIONAL_ID_NOT_FOUND if there is none."""
    known = state.find(transactional_id)
    if known is None:
        raise TransactionalIdNotFound(f"there is no transactional id {transactional_id!r}")
    return known
