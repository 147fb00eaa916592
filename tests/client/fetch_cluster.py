"""Two scripted brokers that lead the partitions of topic `t` and serve fetches with sessions."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from client.scripted_broker import ScriptedBroker, api_versions
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataResponse,
)
from odradek.protocol.structs import Message
from odradek.records.builder import build_batch
from odradek.records.kernels.record_objects import Record

TOPIC_ID = bytes(range(16))
PARTITIONS = [TopicPartition("t", number) for number in range(2)]
SERVED = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FETCH, ApiKey.LIST_OFFSETS)

Row = FetchResponse.Responses.Partitions


class FetchBroker(ScriptedBroker):
    """Serves fetches of one client. `fetches` has the requests, `faults` what to answer to the next ones."""

    def __init__(self, node_id: int, cluster: FetchCluster) -> None:
        super().__init__(node_id)
        self.fetches: list[FetchRequest] = []
        self.faults: deque[ErrorCode | None] = deque()
        """The error of the whole response, or None to close the connection."""
        self.rows: dict[int, deque[Row]] = {}
        """What to answer to the next fetches of a partition."""
        self.is_ready = asyncio.Event()
        """Cleared: requests are received, and their responses wait."""
        self.is_ready.set()
        self.session_id = 0
        self.session_epoch = 0
        self._offsets: dict[int, int] = {}
        self._shared = cluster
        self.say |= {
            ApiKey.API_VERSIONS: lambda _: api_versions(*SERVED),
            ApiKey.METADATA: cluster.metadata,
            ApiKey.FETCH: self.fetch,
            ApiKey.LIST_OFFSETS: cluster.list_offsets,
        }

    async def fetch(self, request: Message) -> FetchResponse | None:
        assert isinstance(request, FetchRequest)
        self.fetches.append(request)
        await self.is_ready.wait()
        if self.faults:
            fault = self.faults.popleft()
            return None if fault is None else FetchResponse(error_code=fault)
        if request.session_epoch == 0:
            self.session_id, self.session_epoch, self._offsets = self.session_id + 1, 0, {}
        assert request.session_epoch == self.session_epoch
        assert request.session_id == self.session_id or request.session_epoch == 0
        self.session_epoch += 1
        for topic in request.forgotten_topics_data:
            for number in topic.partitions:
                del self._offsets[number]
        self._offsets |= dict(named(request))
        for _ in range(max(1, request.max_wait_ms // 5)):
            rows = [row for row in map(self._row, list(self._offsets)) if row is not None]
            if rows:
                break
            await asyncio.sleep(0.005)
        topics = [FetchResponse.Responses(topic_id=TOPIC_ID, partitions=rows)] if rows else []
        return FetchResponse(session_id=self.session_id, responses=topics)

    def _row(self, number: int) -> Row | None:
        if self.rows.get(number):
            return self.rows[number].popleft()
        end, offset = self._shared.ends[number], self._offsets[number]
        if offset >= end:
            return None
        end = min(end, offset + self._shared.records_per_fetch)
        return Row(partition_index=number, high_watermark=end, records=memoryview(records(offset, end)))


class FetchCluster:
    """What both brokers know: leaders, epochs, and the end of each partition's log."""

    def __init__(self) -> None:
        self.leaders = dict.fromkeys(range(len(PARTITIONS)), 0)
        self.leader_epoch = 0
        self.ends = Counter(dict.fromkeys(self.leaders, 0))
        self.records_per_fetch = 1000
        self.metadata_requests = 0
        self.brokers = [FetchBroker(number, self) for number in range(2)]
        for broker in self.brokers:
            broker.cluster = list(self.brokers)

    def lead(self, number: int, node_id: int) -> None:
        """Elect another leader."""
        self.leaders[number] = node_id
        self.leader_epoch += 1

    def metadata(self, request: Message) -> MetadataResponse:
        self.metadata_requests += 1
        response = self.brokers[0].metadata(request)
        rows = [
            MetadataResponse.Topics.Partitions(
                partition_index=number,
                leader_id=leader,
                leader_epoch=self.leader_epoch,
                replica_nodes=[0, 1],
                isr_nodes=[0, 1],
            )
            for number, leader in self.leaders.items()
        ]
        response.topics = [MetadataResponse.Topics(name="t", topic_id=TOPIC_ID, partitions=rows)]
        return response

    def list_offsets(self, request: Message) -> ListOffsetsResponse:
        assert isinstance(request, ListOffsetsRequest)
        rows = [
            ListOffsetsResponse.Topics.Partitions(
                partition_index=one.partition_index,
                offset=0 if one.timestamp == -2 else self.ends[one.partition_index],
                timestamp=-1,
            )
            for topic in request.topics
            for one in topic.partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsResponse.Topics(name="t", partitions=rows)])


@asynccontextmanager
async def fetch_cluster() -> AsyncIterator[FetchCluster]:
    cluster = FetchCluster()
    async with cluster.brokers[0], cluster.brokers[1]:
        yield cluster


def records(start: int, end: int) -> bytes:
    """One batch for each offset, which is its value too."""
    return b"".join(
        build_batch([Record(offset, 0, None, b"%d" % offset, ())], base_offset=offset)
        for offset in range(start, end)
    )


def named(request: FetchRequest) -> list[tuple[int, int]]:
    """The partitions that a request names, with their fetch offsets."""
    return [(one.partition, one.fetch_offset) for topic in request.topics for one in topic.partitions]


def removed(request: FetchRequest) -> list[int]:
    """The partitions that a request removes from the session."""
    return [number for topic in request.forgotten_topics_data for number in topic.partitions]


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)
