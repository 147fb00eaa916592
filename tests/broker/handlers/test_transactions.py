"""A transaction through the requests of one broker: what readers see before and after it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.requests.add_partitions_to_txn_manager import Codes, TransactionPartitions
from odradek.broker.server import BrokerServer
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)

from ..conftest import Wire
from ..on_this_loop import a_broker, connect, create_topic, run
from ..wire import a_batch

TOPIC, GROUP, ID = "orders", "readers", "t"
SETTINGS = ("transaction.state.log.num.partitions=3", "offsets.topic.num.partitions=2")
PATIENT = "add.partitions.to.txn.retry.backoff.max.ms=20000"
"""A leader waits however slow the machine is, so that what is counted does not depend on time."""
READ_COMMITTED = 1
V1, V2 = False, True


class Producer:
    """One transactional producer on one connection."""

    def __init__(self, wire: Wire, *, is_v2: bool) -> None:
        self.wire = wire
        self.is_v2 = is_v2
        self.producer_id, self.epoch, self.sequence = -1, -1, 0

    async def begin(self) -> None:
        for key_type, key in ((0, GROUP), (1, ID)):
            find = FindCoordinatorRequest(key=key, key_type=key_type)
            while (await self.wire.ask(ApiKey.FIND_COORDINATOR, 2, find)).error_code:
                await asyncio.sleep(0.01)
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        answer = await self.again(lambda: self.wire.ask(ApiKey.INIT_PRODUCER_ID, 5, request))
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        if not self.is_v2:
            await self.add()

    async def again(
        self, ask: Callable[[], Awaitable[Any]], code_of: Callable[[Any], int] = lambda a: a.error_code
    ) -> Any:
        """Ask until the error is not one to try again on."""
        while ErrorCode(code_of(answer := await ask())).is_retriable:
            await asyncio.sleep(0.005)
        return answer

    async def add(self) -> None:
        topics = AddPartitionsToTxnRequest.V3AndBelowTopics(name=TOPIC, partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topics],
        )
        await self.again(
            lambda: self.wire.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request),
            lambda a: a.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )

    def a_produce(self, value: bytes = b"x") -> ProduceRequest:
        batch = a_batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
            is_transactional=True,
        )
        self.sequence += 1
        row = ProduceRequest.TopicData
        part = row.PartitionData(index=0, records=batch)
        return ProduceRequest(
            transactional_id=ID,
            acks=-1,
            timeout_ms=5000,
            topic_data=[row(name=TOPIC, partition_data=[part])],
        )

    @property
    def produce_version(self) -> int:
        return 12 if self.is_v2 else 11

    async def produce(self) -> None:
        request = self.a_produce()
        answer = await self.again(
            lambda: self.wire.ask(ApiKey.PRODUCE, self.produce_version, request),
            lambda a: a.responses[0].partition_responses[0].error_code,
        )
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    async def commit_offset(self, offset: int) -> None:
        producer = {
            "transactional_id": ID,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }
        if not self.is_v2:
            added = AddOffsetsToTxnRequest(group_id=GROUP, **producer)
            await self.again(lambda: self.wire.ask(ApiKey.ADD_OFFSETS_TO_TXN, 3, added))
        row = TxnOffsetCommitRequest.Topics
        part = row.Partitions(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            group_id=GROUP, topics=[row(name=TOPIC, partitions=[part])], **producer
        )
        answer = await self.again(
            lambda: self.wire.ask(ApiKey.TXN_OFFSET_COMMIT, 5 if self.is_v2 else 3, request),
            lambda a: a.topics[0].partitions[0].error_code,
        )
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    async def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=ID,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = await self.wire.ask(ApiKey.END_TXN, 5 if self.is_v2 else 3, request)
        assert answer.error_code == ErrorCode.NONE
        if self.is_v2:
            assert answer.producer_epoch == self.epoch + 1
            self.epoch, self.sequence = answer.producer_epoch, 0


def a_committed_fetch(offset: int = 0, max_wait_ms: int = 0) -> FetchRequest:
    row = FetchRequest.Topics
    part = row.Partitions(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED,
        session_epoch=-1,
        topics=[row(topic=TOPIC, partitions=[part])],
    )


async def fetched(wire: Wire) -> Any:
    answer = await wire.ask(ApiKey.FETCH, 12, a_committed_fetch())
    return answer.responses[0].partitions[0]


async def stable_offset(wire: Wire) -> int:
    row = ListOffsetsRequest.Topics
    topics = [row(name=TOPIC, partitions=[row.Partitions(partition_index=0, timestamp=-1)])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=topics)
    answer = await wire.ask(ApiKey.LIST_OFFSETS, 5, request)
    return int(answer.topics[0].partitions[0].offset)


async def group_offset(wire: Wire, *, require_stable: bool) -> tuple[ErrorCode, int]:
    topics = OffsetFetchRequest.Groups.Topics(name=TOPIC, partition_indexes=[0])
    group = OffsetFetchRequest.Groups(group_id=GROUP, topics=[topics])
    request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
    answer = await wire.ask(ApiKey.OFFSET_FETCH, 8, request)
    (row,) = answer.groups[0].topics[0].partitions
    return ErrorCode(row.error_code), row.committed_offset


@pytest.mark.parametrize("is_v2", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_a_waiting_reader_is_woken_by_the_marker(tmp_path: Path, is_v2: bool, commit: bool) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *SETTINGS) as (server, wire):
            await create_topic(wire, TOPIC)
            producer = Producer(wire, is_v2=is_v2)
            await producer.begin()
            await producer.produce()
            assert (await fetched(wire)).records in (None, b"")
            assert await stable_offset(wire) == 0

            reader = await connect(server)
            reader.send(ApiKey.FETCH, 12, a_committed_fetch(max_wait_ms=30_000))
            waiting = asyncio.create_task(reader.receive(ApiKey.FETCH, 12))
            await asyncio.sleep(0.05)
            assert not waiting.done()

            await producer.end(commit=commit)
            _, answer = await asyncio.wait_for(waiting, 15)
            row = answer.responses[0].partitions[0]
            assert row.last_stable_offset == 2
            aborted = [(one.producer_id, one.first_offset) for one in row.aborted_transactions or ()]
            assert aborted == ([] if commit else [(producer.producer_id, 0)])
            assert await stable_offset(wire) == 2
            reader.writer.transport.abort()

    run(main)


@pytest.mark.parametrize("is_v2", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_offsets_are_unstable_until_the_transaction_is_ended(
    tmp_path: Path, is_v2: bool, commit: bool
) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *SETTINGS) as (_, wire):
            await create_topic(wire, TOPIC)
            producer = Producer(wire, is_v2=is_v2)
            await producer.begin()
            assert await group_offset(wire, require_stable=True) == (ErrorCode.NONE, -1)
            await producer.commit_offset(42)
            assert await group_offset(wire, require_stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            assert await group_offset(wire, require_stable=False) == (ErrorCode.NONE, -1)

            await producer.end(commit=commit)
            while (found := await group_offset(wire, require_stable=True))[0]:
                await asyncio.sleep(0.005)
            assert found == (ErrorCode.NONE, 42 if commit else -1)

    run(main)


@pytest.mark.parametrize("is_v2", [V1, V2], ids=["v1", "v2"])
def test_requests_behind_the_first_of_a_transaction_do_not_overtake_it(tmp_path: Path, is_v2: bool) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *SETTINGS) as (_, wire):
            await create_topic(wire, TOPIC)
            producer = Producer(wire, is_v2=is_v2)
            await producer.begin()
            for number in range(5):
                wire.send(ApiKey.PRODUCE, producer.produce_version, producer.a_produce(b"%d" % number))
            rows = [
                (await wire.receive(ApiKey.PRODUCE, producer.produce_version))[1]
                .responses[0]
                .partition_responses[0]
                for _ in range(5)
            ]
            assert [row.error_code for row in rows] == [ErrorCode.NONE] * 5
            assert [row.base_offset for row in rows] == list(range(5))

    run(main)


def test_a_partition_that_was_not_added_is_refused_unless_verification_is_off(tmp_path: Path) -> None:
    async def first_code(*settings: str) -> int:
        directory = tmp_path / str(len(settings))
        directory.mkdir()
        async with a_broker(directory, *SETTINGS, *settings) as (_, wire):
            await create_topic(wire, TOPIC)
            producer = Producer(wire, is_v2=True)
            await producer.begin()
            answer = await wire.ask(ApiKey.PRODUCE, 11, producer.a_produce())
            return int(answer.responses[0].partition_responses[0].error_code)

    async def main() -> None:
        assert await first_code() == ErrorCode.TRANSACTION_ABORTABLE
        assert await first_code("transaction.partition.verification.enable=false") == ErrorCode.NONE

    run(main)


def test_the_coordinator_is_asked_once_for_each_of_many_v2_transactions(tmp_path: Path) -> None:
    transactions = 50

    async def main() -> None:
        async with a_broker(tmp_path, *SETTINGS, PATIENT) as (server, wire):
            await create_topic(wire, TOPIC)
            producer = Producer(wire, is_v2=True)
            await producer.begin()
            answers = answers_of_the_coordinator(server)
            for _ in range(transactions):
                await producer.produce()
                await producer.end(commit=True)
            # A CONCURRENT_TRANSACTIONS among them would have been followed by a pause.
            assert answers == [ErrorCode.NONE] * transactions

    run(main)


def answers_of_the_coordinator(server: BrokerServer) -> list[ErrorCode]:
    """What it will say to the leaders of this broker, one code for each request of a leader."""
    manager = server.services.add_partitions_to_txn_manager
    add_or_verify = manager.add_or_verify
    seen: list[ErrorCode] = []

    async def noted(broker_id: int, wanted: TransactionPartitions) -> Codes:
        codes = await add_or_verify(broker_id, wanted)
        seen.extend(codes.values())
        return codes

    manager.add_or_verify = noted  # type: ignore[method-assign]
    return seen
