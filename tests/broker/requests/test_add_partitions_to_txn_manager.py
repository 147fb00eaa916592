from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from odradek.broker.requests.add_partitions_to_txn_manager import (
    AddPartitionsToTxnManager,
    TransactionPartitions,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from odradek.transactions.transaction import ProducerIdAndEpoch

ONE, OTHER = TopicPartition("orders", 0), TopicPartition("payments", 3)
COORDINATOR, ANOTHER_COORDINATOR = 1, 2
Result = AddPartitionsToTxnResponse.ResultsByTransaction
Row = tuple[str, int, bool, tuple[TopicPartition, ...]]


def partitions_of(
    name: str, *partitions: TopicPartition, epoch: int = 0, verify: bool = True
) -> TransactionPartitions:
    return TransactionPartitions(name, ProducerIdAndEpoch(7, epoch), verify, frozenset(partitions or [ONE]))


class Brokers:
    """Keeps the requests until the test answers them; partitions of `payments` are not in any transaction."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, list[Row]]] = []
        self._answers: list[asyncio.Future[AddPartitionsToTxnResponse]] = []
        self._requests: list[AddPartitionsToTxnRequest] = []
        self.manager = AddPartitionsToTxnManager(asyncio.get_running_loop(), self._send)

    async def _send(self, broker_id: int, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        self.sent.append((broker_id, [row_of(row) for row in request.transactions]))
        self._requests.append(request)
        self._answers.append(asyncio.get_running_loop().create_future())
        return await self._answers[-1]

    async def ask(
        self, *asked: TransactionPartitions, broker_id: int = COORDINATOR
    ) -> list[asyncio.Task[Any]]:
        tasks = [asyncio.ensure_future(self.manager.add_or_verify(broker_id, one)) for one in asked]
        await settle()
        return tasks

    async def answer(self, number: int) -> None:
        results = [
            Result(
                transactional_id=row.transactional_id,
                topic_results=[
                    Result.TopicResults(
                        name=topic.name,
                        results_by_partition=[
                            Result.TopicResults.ResultsByPartition(
                                partition_index=index, partition_error_code=code_of(topic.name)
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in row.topics
                ],
            )
            for row in self._requests[number].transactions
        ]
        self._answers[number].set_result(AddPartitionsToTxnResponse(results_by_transaction=results))
        await settle()

    async def fail(self, number: int, error: Exception | None = None) -> None:
        self._answers[number].set_exception(error or OdradekError("gone"))
        await settle()


def code_of(topic: str) -> ErrorCode:
    return ErrorCode.TRANSACTION_ABORTABLE if topic == OTHER.topic else ErrorCode.NONE


def row_of(row: AddPartitionsToTxnRequest.Transactions) -> Row:
    partitions = (TopicPartition(topic.name, index) for topic in row.topics for index in topic.partitions)
    return row.transactional_id, row.producer_epoch, row.verify_only, tuple(sorted(partitions))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_what_is_asked_meanwhile_goes_with_the_next_request() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        first = await brokers.ask(partitions_of("a"))
        later = await brokers.ask(
            partitions_of("b", OTHER), partitions_of("c", ONE, OTHER), partitions_of("a", OTHER)
        )
        assert brokers.sent == [(COORDINATOR, [("a", 0, True, (ONE,))])]
        await brokers.answer(0)
        assert await first[0] == {ONE: ErrorCode.NONE}
        assert brokers.sent[1:] == [
            (
                COORDINATOR,
                [("b", 0, True, (OTHER,)), ("c", 0, True, (ONE, OTHER)), ("a", 0, True, (OTHER,))],
            )
        ]
        await brokers.answer(1)
        assert [await one for one in later] == [
            {OTHER: ErrorCode.TRANSACTION_ABORTABLE},
            {ONE: ErrorCode.NONE, OTHER: ErrorCode.TRANSACTION_ABORTABLE},
            {OTHER: ErrorCode.TRANSACTION_ABORTABLE},
        ]

    run(scenario())


def test_questions_about_one_transaction_share_a_row_and_each_gets_its_own_answer() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        tasks = await brokers.ask(
            partitions_of("a", ONE), partitions_of("a", OTHER), partitions_of("a", ONE, OTHER)
        )
        assert brokers.sent == [(COORDINATOR, [("a", 0, True, (ONE, OTHER))])]
        await brokers.answer(0)
        assert [set(await one) for one in tasks] == [{ONE}, {OTHER}, {ONE, OTHER}]

    run(scenario())


@pytest.mark.parametrize("other", [partitions_of("a", epoch=1), partitions_of("a", verify=False)])
def test_what_contradicts_a_row_goes_with_the_request_after_it(other: TransactionPartitions) -> None:
    async def scenario() -> None:
        brokers = Brokers()
        tasks = await brokers.ask(partitions_of("a"), other, partitions_of("b"))
        assert [[row[0] for row in rows] for _, rows in brokers.sent] == [["a", "b"]]
        await brokers.answer(0)
        assert brokers.sent[1] == (
            COORDINATOR,
            [("a", other.producer.producer_epoch, other.is_verify_only, (ONE,))],
        )
        await brokers.answer(1)
        assert [await one for one in tasks] == [{ONE: ErrorCode.NONE}] * 3

    run(scenario())


def test_brokers_are_asked_side_by_side() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        tasks = await brokers.ask(partitions_of("a"))
        tasks += await brokers.ask(partitions_of("b"), broker_id=ANOTHER_COORDINATOR)
        assert [broker_id for broker_id, _ in brokers.sent] == [COORDINATOR, ANOTHER_COORDINATOR]
        await brokers.answer(1)
        await brokers.answer(0)
        await asyncio.gather(*tasks)

    run(scenario())


def test_an_error_that_nobody_expects_leaves_no_producer_without_an_answer() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        tasks = await brokers.ask(partitions_of("a"))
        tasks += await brokers.ask(partitions_of("b"))
        await brokers.fail(0, ValueError("an answer that cannot be read"))
        async with asyncio.timeout(20):
            assert [await one for one in tasks] == [{ONE: ErrorCode.NETWORK_EXCEPTION}] * 2
        again = await brokers.ask(partitions_of("b"))
        await brokers.answer(1)
        assert await again[0] == {ONE: ErrorCode.NONE}

    run(scenario())


def test_a_broker_that_does_not_answer_fails_also_what_waits_and_can_be_asked_again() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        tasks = await brokers.ask(partitions_of("a"))
        tasks += await brokers.ask(partitions_of("b"))
        await brokers.fail(0)
        assert [await one for one in tasks] == [{ONE: ErrorCode.NETWORK_EXCEPTION}] * 2
        again = await brokers.ask(partitions_of("b"))
        await brokers.answer(1)
        assert await again[0] == {ONE: ErrorCode.NONE}

    run(scenario())


def test_nobody_waits_for_a_client_that_is_gone() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        gone, other = await brokers.ask(partitions_of("a"), partitions_of("b"))
        gone.cancel()
        await brokers.answer(0)
        assert await other == {ONE: ErrorCode.NONE}

    run(scenario())
