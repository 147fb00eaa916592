"""Producers and readers in simulated processes, which record a history of what they did and were answered."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.net.broker_connection import BrokerConnections, RequestFailed
from odradek.protocol.messages import (
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
)
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.kernels.record_objects import Record
from odradek.records.record import read_records
from odradek.testing.history.operations import History, Outcome, Poll, Read, Send
from odradek.testing.simulation.virtual_time import process_now_ms

REQUEST_TIMEOUT_S = 2.0
METADATA_VERSION = 12
PRODUCE_VERSION = 9
FETCH_VERSION = 12
INIT_PRODUCER_ID_VERSION = 4

CERTAINLY_NOT_APPENDED = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


class Leader(NamedTuple):
    """Who leads a partition, as far as a client knows."""

    broker_id: int
    leader_epoch: int


class Client:
    """What producers and readers share: finding the leader of one partition, through any broker."""

    def __init__(
        self,
        name: str,
        topic: str,
        partition: int,
        connections: BrokerConnections,
        broker_ids: Sequence[int],
        seeded: random.Random,
        history: History,
    ) -> None:
        self.name = name
        self.topic = topic
        self.partition = partition
        self.connections = connections
        self.broker_ids = tuple(broker_ids)
        self.seeded = seeded
        self.history = history
        self._leader: Leader | None = None

    async def ask(self, broker_id: int, version: int, request: Any) -> Any:
        """The response of a broker; RequestFailed if there is none."""
        return await self.connections.send(broker_id, request, version=version, timeout_s=REQUEST_TIMEOUT_S)

    async def leader(self) -> Leader:
        """The present leader; asks until there is one."""
        while self._leader is None:
            with contextlib.suppress(RequestFailed):
                self._leader = await self._find_leader()
            if self._leader is None:
                await asyncio.sleep(0.05 + self.seeded.random() / 10)
        return self._leader

    def forget_leader(self) -> None:
        """Ask again before the next request."""
        self._leader = None

    async def _find_leader(self) -> Leader | None:
        wanted = MetadataRequest.Topics(name=self.topic)
        request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
        response = await self.ask(self.seeded.choice(self.broker_ids), METADATA_VERSION, request)
        for topic in response.topics:
            for row in topic.partitions:
                if row.partition_index == self.partition and row.leader_id >= 0:
                    return Leader(row.leader_id, row.leader_epoch)
        return None


class SimulatedProducer(Client):
    """An idempotent producer with acks=all and one request in flight: retries keep their sequence."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._producer_id = self._producer_epoch = -1
        self._sequence = 0
        self._number = 0

    async def run(self) -> None:
        """Send until the task is cancelled."""
        while True:
            await self.send_batch(self.seeded.randint(1, 3))
            await asyncio.sleep(self.seeded.random() / 2)

    async def send_batch(self, count: int) -> None:
        """Send a batch of so many records, and record its outcome."""
        if self._producer_id < 0:
            await self._init_producer_id()
        values = [f"{self.name}:{self.partition}:{self._number + index}" for index in range(count)]
        outcome, base_offset = Outcome.UNKNOWN, -1
        try:
            outcome, base_offset = await self._send_with_retries(values)
        finally:
            at_ms = process_now_ms()
            for index, value in enumerate(values):
                offset = base_offset + index if base_offset >= 0 else -1
                self.history.add(
                    Send(
                        self.name,
                        at_ms,
                        self.topic,
                        self.partition,
                        self._number + index,
                        value,
                        outcome,
                        offset,
                    )
                )
            self._number += count
        if outcome is Outcome.ACKNOWLEDGED:
            self._sequence += count
        else:
            self._producer_id = -1  # the sequence is not known any more

    async def _send_with_retries(self, values: list[str]) -> tuple[Outcome, int]:
        may_be_appended = False
        for _ in range(40):
            leader = await self.leader()
            try:
                response = await self.ask(leader.broker_id, PRODUCE_VERSION, self._request(values))
            except RequestFailed:
                may_be_appended = True
                self.forget_leader()
                await asyncio.sleep(0.1)
                continue
            row = response.responses[0].partition_responses[0]
            if row.error_code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                return Outcome.ACKNOWLEDGED, row.base_offset
            error = ErrorCode(row.error_code)
            if error in (
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                ErrorCode.UNKNOWN_PRODUCER_ID,
                ErrorCode.INVALID_PRODUCER_EPOCH,
            ):
                return Outcome.UNKNOWN, -1
            may_be_appended = may_be_appended or error not in (
                *CERTAINLY_NOT_APPENDED,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
            if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                may_be_appended = (
                    True  # also the answer to a batch that was parked when its leader epoch ended
                )
            self.forget_leader()
            await asyncio.sleep(0.05 + self.seeded.random() / 10)
        return (Outcome.UNKNOWN if may_be_appended else Outcome.FAILED), -1

    def _request(self, values: list[str]) -> ProduceRequest:
        now_ms = process_now_ms()
        records = [Record(index, now_ms, None, value.encode(), ()) for index, value in enumerate(values)]
        batch = build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence,
        )
        row = ProduceRequest.TopicData
        data = row.PartitionData(index=self.partition, records=bytes(batch))
        return ProduceRequest(
            acks=-1, timeout_ms=1500, topic_data=[row(name=self.topic, partition_data=[data])]
        )

    async def _init_producer_id(self) -> None:
        while self._producer_id < 0:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            try:
                response = await self.ask(
                    self.seeded.choice(self.broker_ids), INIT_PRODUCER_ID_VERSION, request
                )
            except RequestFailed:
                await asyncio.sleep(0.2)
                continue
            if response.error_code == ErrorCode.NONE:
                self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
                self._sequence = 0
            else:
                await asyncio.sleep(0.2)


class SimulatedReader(Client):
    """Reads a partition from its beginning, from its current leader, and never goes back."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.position = 0
        self.high_watermark = -1

    async def run(self) -> None:
        """Read until the task is cancelled."""
        while True:
            if not await self.poll():
                await asyncio.sleep(self.seeded.random() / 5)

    async def read_to(self, end_offset: int) -> None:
        """Read until the position has reached `end_offset`."""
        while self.position < end_offset:
            await self.poll()

    async def poll(self) -> bool:
        """Fetch once; whether there were records."""
        leader = await self.leader()
        try:
            response = await self.ask(leader.broker_id, FETCH_VERSION, self._request(leader))
        except RequestFailed:
            self.forget_leader()
            return False
        if response.error_code != ErrorCode.NONE or not response.responses:
            self.forget_leader()
            return False
        row = response.responses[0].partitions[0]
        if row.error_code != ErrorCode.NONE:
            self.forget_leader()
            await asyncio.sleep(0.05)
            return False
        self.high_watermark = row.high_watermark
        return self._take(row)

    def _take(self, row: FetchResponse.Responses.Partitions) -> bool:
        reads: list[Read] = []
        payload = bytes(row.records or b"")
        for position, header in iterate_headers(payload):
            if header.last_offset < self.position:
                continue
            if header.is_control:
                self.position = header.last_offset + 1
                continue
            reads += [
                Read(self.topic, self.partition, record.offset, record.value.decode())
                for record in read_records(payload, position, max_bytes=1 << 20)
                if record.offset >= self.position and record.value is not None
            ]
            self.position = header.last_offset + 1
        if reads:
            self.history.add(Poll(self.name, process_now_ms(), 0, tuple(reads)))
        return bool(reads)

    def _request(self, leader: Leader) -> FetchRequest:
        partition = FetchRequest.Topics.Partitions(
            partition=self.partition,
            current_leader_epoch=leader.leader_epoch,
            fetch_offset=self.position,
            partition_max_bytes=1 << 20,
        )
        return FetchRequest(
            max_wait_ms=300,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchRequest.Topics(topic=self.topic, partitions=[partition])],
        )
