"""Reads partitions: one Fetch at a time to each leader, no group, no session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from odradek.cli.consume.batches import AbortedTransaction, ReadBatch, read_batches
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.base import by_topic, require
from odradek.client.admin.offsets import IsolationLevel, OffsetSpec
from odradek.client.broker_errors import OffsetOutOfRange, broker_error
from odradek.client.errors import BrokerError, ClientError, is_retriable
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FetchRequest, FetchResponse

MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
MAX_WAIT_MS = 500
RETRY_PAUSE_S = 0.1
_FIRST_WITH_TOPIC_IDS = 13
_CONSUMER = -1


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one answer had of one partition: the batches, and the end of what can be read."""

    partition: TopicPartition
    batches: list[ReadBatch]
    high_watermark: int
    next_offset: int


@dataclass(slots=True)
class PartitionsReader:
    """Reads on from `positions`. Whoever reads may remove a partition from there that it has enough of."""

    admin: AsyncAdmin
    positions: dict[TopicPartition, int]
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    _asked: dict[asyncio.Task[list[Fetched]], int] = field(default_factory=dict)

    async def read(self) -> AsyncGenerator[Fetched, None]:
        """What comes, as it comes; ends when no partition is left."""
        brokers = self.admin.brokers
        brokers.metadata.want({partition.topic for partition in self.positions})
        try:
            while self.positions:
                await brokers.retry("asking for leaders", brokers.ensure_fresh)
                self._ask_idle_leaders()
                if not self._asked:
                    brokers.metadata.mark_stale()
                    await asyncio.sleep(RETRY_PAUSE_S)
                    continue
                done, _ = await asyncio.wait(self._asked, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del self._asked[task]
                    for fetched in await self._outcome(task):
                        self.positions[fetched.partition] = fetched.next_offset
                        yield fetched
        finally:
            for task in self._asked:
                task.cancel()

    def _ask_idle_leaders(self) -> None:
        metadata, busy = self.admin.brokers.metadata, set(self._asked.values())
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in self.positions:
            view = metadata.leader(partition)
            if view is not None and view.leader_id not in busy:
                by_leader.setdefault(view.leader_id, []).append(partition)
        for node_id, partitions in by_leader.items():
            task = asyncio.create_task(self._fetch(node_id, partitions))
            self._asked[task] = node_id

    async def _outcome(self, task: asyncio.Task[list[Fetched]]) -> list[Fetched]:
        try:
            return [one for one in task.result() if one.partition in self.positions]
        except (BrokerError, ClientError) as error:
            if not is_retriable(error):
                raise
            self.admin.brokers.metadata.mark_stale()
            await asyncio.sleep(RETRY_PAUSE_S)
            return []

    async def _fetch(self, node_id: int, partitions: list[TopicPartition]) -> list[Fetched]:
        connection = await self.admin.brokers.connection(node_id)
        uses_ids = connection.versions.serves(ApiKey.FETCH, at_least=_FIRST_WITH_TOPIC_IDS)
        answer = await connection.ask(self._request(partitions, uses_ids), FetchResponse)
        if answer.error_code != ErrorCode.NONE:
            raise broker_error(answer.error_code)
        names = self.admin.brokers.metadata.names
        found = []
        for topic in answer.responses:
            name = names.get(topic.topic_id, "") if uses_ids else topic.topic
            for row in topic.partitions:
                partition = TopicPartition(name, row.partition_index)
                if partition in self.positions:
                    found.append(await self._read(partition, row))
        return found

    def _request(self, partitions: list[TopicPartition], uses_ids: bool) -> FetchRequest:
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, isolation_level=self.isolation_level
        )
        for topic, numbers in by_topic(partitions).items():
            rows = [
                FetchRequest.Topics.Partitions(
                    partition=number,
                    fetch_offset=self.positions[TopicPartition(topic, number)],
                    partition_max_bytes=PARTITION_MAX_BYTES,
                )
                for number in numbers
            ]
            if uses_ids:
                topic_id = self.admin.brokers.metadata.topics[topic].topic_id
                request.topics.append(FetchRequest.Topics(topic_id=topic_id, partitions=rows))
            else:
                request.topics.append(FetchRequest.Topics(topic=topic, partitions=rows))
        return request

    async def _read(self, partition: TopicPartition, row: FetchResponse.Responses.Partitions) -> Fetched:
        position = self.positions[partition]
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Fetched(partition, [], -1, await self._back_in_range(partition, position))
        if row.error_code != ErrorCode.NONE:
            raise broker_error(row.error_code, f"reading {partition}")
        aborted = None
        if self.isolation_level is IsolationLevel.READ_COMMITTED:
            rows = row.aborted_transactions or []
            aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in rows]
        batches = list(read_batches(memoryview(row.records or b""), position, aborted))
        next_offset = batches[-1].next_offset if batches else position
        end = row.high_watermark if aborted is None else row.last_stable_offset
        return Fetched(partition, batches, end, max(position, next_offset))

    async def _back_in_range(self, partition: TopicPartition, position: int) -> int:
        """Retention may have taken what we were to read next; an offset after the end is a mistake."""
        earliest = require(
            (await self.admin.list_offsets({partition: OffsetSpec.EARLIEST}))[partition]
        ).offset
        if position < earliest:
            return earliest
        latest = require((await self.admin.list_offsets({partition: OffsetSpec.LATEST}))[partition]).offset
        raise OffsetOutOfRange(f"{partition} ends at offset {latest}; there is no offset {position} yet")
