"""How long and how often a leader asks the coordinator, against a coordinator that is busy for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.virtual_time import VirtualTimeLoop, run_in_virtual_time
from odradek.broker.requests.add_partitions_to_txn_manager import Codes, TransactionPartitions
from odradek.broker.requests.transaction_verification import TransactionOperation, ask_coordinator
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.net.request_limit import RequestLimit
from odradek.transactions.completions import Completions
from odradek.transactions.partitions import TRANSACTION_STATE
from odradek.transactions.transaction import ProducerIdAndEpoch

ID, PARTITION = "t", TopicPartition("orders", 0)
THIS_BROKER, OTHER_BROKER = 1, 2
DEFAULTS = {"longest_pause_ms": 20, "in_all_ms": 100}


class Coordinator:
    """Says CONCURRENT_TRANSACTIONS until the transaction is `completed`; notes when it was asked."""

    def __init__(self, broker_id: int, loop: VirtualTimeLoop) -> None:
        self.broker_id = broker_id
        self.asked_at_ms: list[int] = []
        self.is_ending = True
        self._loop = loop
        self._completions = Completions()

    def completed(self) -> None:
        self.is_ending = False
        self._completions.notify(ID)

    async def add_or_verify(self, broker_id: int, wanted: TransactionPartitions) -> Codes:
        assert broker_id == self.broker_id
        self.asked_at_ms.append(round(self._loop.time() * 1000))
        code = ErrorCode.CONCURRENT_TRANSACTIONS if self.is_ending else ErrorCode.NONE
        return dict.fromkeys(wanted.partitions, code)

    async def wait_for_completion(self, transactional_id: str, timeout_s: float) -> None:
        assert self.broker_id == THIS_BROKER
        if self.is_ending:
            await self._completions.wait(transactional_id, timeout_s)

    def services(self, settings: Mapping[str, int]) -> Any:
        topic = SimpleNamespace(partitions={0: SimpleNamespace(leader=self.broker_id)})
        config = SimpleNamespace(
            transaction_partition_verification_enable=True,
            add_partitions_to_txn_retry_backoff_ms=settings["longest_pause_ms"],
            add_partitions_to_txn_retry_backoff_max_ms=settings["in_all_ms"],
        )
        return SimpleNamespace(
            broker_id=THIS_BROKER,
            loop=self._loop,
            config=lambda: config,
            image=SimpleNamespace(topics={TRANSACTION_STATE: topic}),
            request_limit=RequestLimit(10, 1000),
            add_partitions_to_txn_manager=self,
            transactions=self,
        )


class VerificationResult(SimpleNamespace):
    code: ErrorCode
    asked_at_ms: list[int]
    ended_at_ms: int


def ask(
    broker_id: int,
    *,
    completed_after_ms: float | None,
    operation: TransactionOperation = TransactionOperation.ADD,
    **settings: int,
) -> VerificationResult:
    async def scenario() -> VerificationResult:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        coordinator = Coordinator(broker_id, loop)
        if completed_after_ms is not None:
            loop.call_later(completed_after_ms / 1000, coordinator.completed)
        services = coordinator.services(DEFAULTS | settings)
        codes = await ask_coordinator(services, ID, ProducerIdAndEpoch(7, 1), operation, [PARTITION])
        assert services.request_limit.open_requests == 0
        return VerificationResult(
            code=codes[PARTITION],
            asked_at_ms=coordinator.asked_at_ms,
            ended_at_ms=round(loop.time() * 1000),
        )

    return run_in_virtual_time(scenario())


def test_the_first_pause_is_one_millisecond() -> None:
    outcome = ask(OTHER_BROKER, completed_after_ms=0.5)
    assert (outcome.code, outcome.asked_at_ms) == (ErrorCode.NONE, [0, 1])


def test_pauses_double_up_to_the_configured_one_within_the_configured_time() -> None:
    outcome = ask(OTHER_BROKER, completed_after_ms=None)
    assert outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert outcome.asked_at_ms == [0, 1, 3, 7, 15, 31, 51, 71, 91]


def test_no_pause_is_longer_than_configured() -> None:
    outcome = ask(OTHER_BROKER, completed_after_ms=None, longest_pause_ms=3, in_all_ms=10)
    assert outcome.asked_at_ms == [0, 1, 3, 6, 9]


def test_on_the_coordinator_itself_the_completion_is_waited_for() -> None:
    outcome = ask(THIS_BROKER, completed_after_ms=42)
    assert (outcome.code, outcome.asked_at_ms) == (ErrorCode.NONE, [42])


def test_on_the_coordinator_itself_the_wait_ends_after_the_configured_time() -> None:
    outcome = ask(THIS_BROKER, completed_after_ms=None)
    assert outcome.code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (outcome.asked_at_ms, outcome.ended_at_ms) == ([100], 100)


@pytest.mark.parametrize("broker_id", [THIS_BROKER, OTHER_BROKER])
def test_a_verification_is_answered_at_once(broker_id: int) -> None:
    outcome = ask(broker_id, completed_after_ms=None, operation=TransactionOperation.VERIFY)
    assert (outcome.code, outcome.asked_at_ms) == (ErrorCode.NOT_ENOUGH_REPLICAS, [0])
