"""A shard of the transaction coordinator whose operations are applied at once, as the runtime does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.common.ids import TopicPartition
from odradek.coordinator.result import Result
from odradek.transactions import operations
from odradek.transactions.operations import EndRequest, Initialization, Initialized, PartitionsRequest
from odradek.transactions.settings import TransactionSettings
from odradek.transactions.state import TransactionCounters, TransactionsState
from odradek.transactions.transaction import ProducerIdAndEpoch, ProducerIdNeeded, Transaction

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 1)
TIMEOUT_MS = 60_000


class Coordinator:
    """`transaction_version`: the finalized feature; `prepared`: transactions that need their markers.

    `completed`: ids whose markers are written.
    """

    def __init__(self, transaction_version: int = 0, **settings: Any) -> None:
        self.settings = TransactionSettings(transaction_version=transaction_version, **settings)
        self.prepared: list[Transaction] = []
        self.completed: list[str] = []
        self.counters = TransactionCounters()
        self.state = TransactionsState(
            lambda: self.settings, self.prepared.append, self.completed.append, self.counters
        )
        self.records: list[Any] = []
        self.next_producer_id = 100
        self.now_ms = 1_000

    def apply(self, result: Result[Any]) -> Any:
        self.records += result.records
        if result.on_written is not None:
            result.on_written()
        else:
            for record in result.records:
                self.state.replay(record, None)
        return result.response

    def _with_ids(self, decide: Callable[[int | None], Result[Any]]) -> Any:
        try:
            return self.apply(decide(None))
        except ProducerIdNeeded:
            self.next_producer_id += 1
            return self.apply(decide(self.next_producer_id))

    def init(
        self, expected: ProducerIdAndEpoch | None = None, timeout_ms: int = TIMEOUT_MS, name: str = "t"
    ) -> Initialized:
        request = Initialization(name, timeout_ms, expected)
        answer: Initialized = self._with_ids(
            lambda new_id: operations.initialize(self.state, request, new_id, self.now_ms)
        )
        return answer

    def producer(self, **given: Any) -> ProducerIdAndEpoch:
        return self.init(**given).producer

    def add(
        self,
        producer: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        client_version: int = 0,
        name: str = "t",
    ) -> None:
        request = PartitionsRequest(name, producer, frozenset(partitions or [ORDERS]), client_version)
        self.apply(operations.add_partitions(self.state, request, self.now_ms))

    def end(
        self, producer: ProducerIdAndEpoch, *, commit: bool = True, client_version: int = 0, name: str = "t"
    ) -> ProducerIdAndEpoch:
        request = EndRequest(name, producer, commit, client_version)
        answer: ProducerIdAndEpoch = self._with_ids(
            lambda new_id: operations.end(self.state, request, new_id, self.now_ms)
        )
        return answer

    def complete(self, name: str = "t") -> None:
        known = self.known(name)
        producer = ProducerIdAndEpoch(known.producer_id, known.producer_epoch)
        self.apply(operations.complete(self.state, name, producer, self.now_ms))

    def known(self, name: str = "t") -> Transaction:
        known = self.state.find(name)
        assert known is not None
        return known

    def restarted(self) -> Coordinator:
        """Another coordinator that has replayed the same records."""
        other = Coordinator()
        other.settings = self.settings
        other.now_ms = self.now_ms
        for record in self.records:
            other.state.replay(record, None)
        other.state.on_loaded(self.now_ms)
        return other
