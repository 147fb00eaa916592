"""A new leader whose log is another one: what was read and is gone is noticed, and nothing is passed over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import AsyncConsumer, TopicPartition
from odradek.client.consumer.errors import LogTruncated
from odradek.client.consumer.fetch.truncation import LeaderEpochEnd
from odradek.client.consumer.group.group_offsets import OffsetAndMetadata
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from odradek.protocol.structs import Message
from odradek.records.builder import build_batch
from odradek.records.kernels.record_objects import Record

PLACE = TopicPartition("t", 0)
SERVED = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
)
QUICK = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5}


class Leader:
    """One partition: the epoch of each record, which is its value too, and the epoch in which it is led."""

    def __init__(self, broker: ScriptedBroker, epochs: list[int]) -> None:
        self.epochs = epochs
        self.leader_epoch = epochs[-1]
        self.broker = broker
        self.asked: list[int] = []
        broker.say |= {
            ApiKey.API_VERSIONS: lambda _: api_versions(*SERVED),
            ApiKey.METADATA: self.metadata,
            ApiKey.FETCH: self.fetch,
            ApiKey.LIST_OFFSETS: self.list_offsets,
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self.end_of_epoch,
        }

    def elect(self, epochs: list[int]) -> None:
        """Another replica leads from now on, and this is what it has."""
        self.leader_epoch += 1
        self.epochs = epochs

    def metadata(self, request: Message) -> MetadataResponse:
        answer = self.broker.metadata(request)
        row = MetadataResponse.Topics.Partitions(
            partition_index=0, leader_id=0, leader_epoch=self.leader_epoch, replica_nodes=[0], isr_nodes=[0]
        )
        answer.topics = [MetadataResponse.Topics(name="t", partitions=[row])]
        return answer

    async def fetch(self, request: Message) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        row = FetchResponse.Responses.Partitions(partition_index=0, high_watermark=len(self.epochs))
        for asked in (one for topic in request.topics for one in topic.partitions):
            if asked.current_leader_epoch != self.leader_epoch:
                row.error_code = ErrorCode.FENCED_LEADER_EPOCH
            elif asked.fetch_offset > len(self.epochs):
                row.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            else:
                row.records = memoryview(self._records(asked.fetch_offset))
        if not row.records:
            await asyncio.sleep(0.005)
        return FetchResponse(responses=[FetchResponse.Responses(topic="t", partitions=[row])])

    def _records(self, start: int) -> bytes:
        return b"".join(
            build_batch(
                [Record(offset, 0, None, b"%d" % self.epochs[offset], ())],
                base_offset=offset,
                partition_leader_epoch=self.epochs[offset],
            )
            for offset in range(start, len(self.epochs))
        )

    def list_offsets(self, request: Message) -> ListOffsetsResponse:
        assert isinstance(request, ListOffsetsRequest)
        row = ListOffsetsResponse.Topics.Partitions(partition_index=0, offset=0, timestamp=-1)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.Topics(name="t", partitions=[row])])

    def end_of_epoch(self, request: Message) -> OffsetForLeaderEpochResponse:
        assert isinstance(request, OffsetForLeaderEpochRequest)
        (asked,) = request.topics[0].partitions
        self.asked.append(asked.leader_epoch)
        row = OffsetForLeaderEpochResponse.Topics.Partitions(partition=0)
        if asked.current_leader_epoch != self.leader_epoch:
            row.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif asked.leader_epoch <= self.leader_epoch:
            known = [epoch for epoch in self.epochs if epoch <= asked.leader_epoch]
            if known:
                row.leader_epoch, row.end_offset = known[-1], len(known)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderEpochResponse.Topics(topic="t", partitions=[row])]
        )


@asynccontextmanager
async def reading(
    epochs: list[int], **settings: Any
) -> AsyncIterator[tuple[Leader, AsyncConsumer[bytes, bytes]]]:
    async with ScriptedBroker() as broker:
        leader = Leader(broker, epochs)
        async with AsyncConsumer(
            bootstrap_servers=broker.address, **{"auto_offset_reset": "earliest", **QUICK, **settings}
        ) as consumer:
            consumer.assign([PLACE])
            yield leader, consumer


async def read(consumer: AsyncConsumer[bytes, bytes], end: int) -> list[tuple[int, bytes | None]]:
    """All records up to an offset."""
    found: list[tuple[int, bytes | None]] = []
    while not found or found[-1][0] < end - 1:
        found += [(record.offset, record.value) for record in await consumer.poll(1)]
    return found


def scenario(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def runs() -> None:
        run(test())

    runs.__name__ = test.__name__
    return runs


@scenario
async def test_a_leader_with_the_same_log_is_read_on() -> None:
    async with reading([0, 0, 0]) as (leader, consumer):
        await read(consumer, 3)
        leader.elect([0, 0, 0, 1, 1])
        assert await read(consumer, 5) == [(3, b"1"), (4, b"1")]
        assert leader.asked == [0]
        leader.elect([0, 0, 0, 1, 1, 2])
        assert await read(consumer, 6) == [(5, b"2")]
        assert leader.asked == [0, 1]


@scenario
async def test_reading_goes_back_to_where_the_logs_part() -> None:
    async with reading([0, 0, 0, 1, 1]) as (leader, consumer):
        await read(consumer, 5)
        leader.elect([0, 0, 0, 2, 2, 2, 2])
        found = await read(consumer, 7)
    assert found == [(3, b"2"), (4, b"2"), (5, b"2"), (6, b"2")], "none of the new log is passed over"


@scenario
async def test_without_a_reset_it_is_reported_until_the_user_seeks() -> None:
    async with reading([0, 0, 0, 1, 1], auto_offset_reset="none") as (leader, consumer):
        consumer.seek(PLACE, 0)
        await read(consumer, 5)
        leader.elect([0, 0, 0, 2, 2, 2, 2])
        for _ in range(2):
            with pytest.raises(LogTruncated, match=r"truncated before offset 5.* from 3 on") as caught:
                await read(consumer, 6)
            reported = caught.value
            assert (reported.partition, reported.offset, reported.divergent_offset) == (PLACE, 5, 3)
        consumer.seek(PLACE, 3)
        assert await read(consumer, 7) == [(3, b"2"), (4, b"2"), (5, b"2"), (6, b"2")]


@scenario
async def test_a_leader_that_knows_no_such_epoch_leads_to_a_reset() -> None:
    async with reading([1, 1, 1]) as (leader, consumer):
        await read(consumer, 3)
        leader.elect([2, 2, 2, 2])
        assert await read(consumer, 4) == [(0, b"2"), (1, b"2"), (2, b"2"), (3, b"2")]


@scenario
async def test_what_was_fetched_ahead_and_is_gone_is_dropped_without_a_word() -> None:
    async with reading([0, 0, 0, 1, 1], auto_offset_reset="none") as (leader, consumer):
        consumer.seek(PLACE, 0)
        first: list[Any] = []
        while len(first) < 2:
            first += await consumer.poll(1, max_records=2 - len(first))
        leader.elect([0, 0, 0, 2, 2])
        while leader.asked != [1, 0]:  # about what was fetched, then about what was handed out
            await asyncio.sleep(0.001)
        found = await read(consumer, 5)
    assert found == [(2, b"0"), (3, b"2"), (4, b"2")]


@scenario
async def test_a_committed_place_is_checked_before_it_is_read() -> None:
    async with reading([0, 0, 0, 2, 2]) as (leader, consumer):
        consumer.seek(PLACE, OffsetAndMetadata(4, leader_epoch=1))
        assert await read(consumer, 5) == [(3, b"2"), (4, b"2")]
        assert leader.asked[0] == 1


@scenario
async def test_a_broker_that_cannot_be_asked_is_read_on() -> None:
    async with reading([0, 0, 0]) as (leader, consumer):
        leader.broker.say[ApiKey.API_VERSIONS] = older_versions
        await read(consumer, 3)
        leader.elect([0, 0, 0, 1])
        assert await read(consumer, 4) == [(3, b"1")]
        assert leader.asked == []


def older_versions(_: Message) -> ApiVersionsResponse:
    answer = api_versions(*SERVED)
    for row in answer.api_keys:
        if row.api_key == ApiKey.OFFSET_FOR_LEADER_EPOCH:
            row.max_version = 2
    return answer


@pytest.mark.parametrize(
    ("end", "is_covered"),
    [((1, 10), True), ((1, 11), True), ((1, 9), False), ((-1, -1), False), ((1, -1), False)],
)
def test_an_epoch_covers_what_it_ends_behind(end: tuple[int, int], is_covered: bool) -> None:
    assert LeaderEpochEnd(*end).covers(10) is is_covered
