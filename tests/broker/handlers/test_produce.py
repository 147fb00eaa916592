"""Produce requests as frames, straight into the dispatcher: what is appended, and what is answered."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.conftest import BROKER_ID, TOPIC_ID, Broker
from log.given_logs import a_batch
from odradek.broker.handlers.produce import DelayedProduce
from odradek.broker.requests.dispatch import Dispatcher
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import ProduceRequest
from odradek.records.compression import Codec
from odradek.replication.partition import LeaderAndIsrState

UNKNOWN_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000
ELSEWHERE = LeaderAndIsrState(BROKER_ID + 1, 0, (BROKER_ID + 1,), (BROKER_ID + 1,), 0)
WITH_FOLLOWER = LeaderAndIsrState(BROKER_ID, 0, (BROKER_ID, BROKER_ID + 1), (BROKER_ID, BROKER_ID + 1), 0)
TRANSACTIONAL_ATTRIBUTES = bytes.fromhex("0010")
TOPIC_IDS_FROM = 13
DAMAGED_END = 255
LED, ALSO_LED, LED_ELSEWHERE, FOLLOWED, MISSING = range(5)


def batch(kind: str, sequence: int) -> bytes:
    made = bytearray(
        a_batch(
            2,
            timestamp_ms=NOW_MS,
            codec=Codec.LZ4 if kind == "lz4" else Codec.NONE,
            producer_id=5 if kind == "idempotent" else -1,
            producer_epoch=0 if kind == "idempotent" else -1,
            base_sequence=sequence if kind == "idempotent" else -1,
        )
    )
    match kind:
        case "damaged":
            made[-1] = DAMAGED_END
        case "transactional":
            made[21:23] = TRANSACTIONAL_ATTRIBUTES
        case "stub":
            del made[10:]
    return bytes(made)


kinds = st.sampled_from(["plain", "plain", "lz4", "idempotent", "damaged", "transactional", "stub"])
parts = st.builds(
    lambda index, kind, sequence: ProduceRequest.TopicData.PartitionData(
        index=index, records=batch(kind, sequence)
    ),
    st.integers(0, 4),
    kinds,
    st.integers(0, 3).map(lambda number: 2 * number),
)
topics = st.builds(
    ProduceRequest.TopicData,
    name=st.sampled_from(["orders", "orders", "nowhere", "__consumer_offsets"]),
    partition_data=st.lists(parts, min_size=1, max_size=3),
)
requests = st.tuples(
    st.integers(8, 13),
    st.builds(
        ProduceRequest,
        acks=st.sampled_from([1, 1, -1, 7]),
        timeout_ms=st.just(0),
        topic_data=st.lists(topics, max_size=2),
    ),
)


def as_sent(version: int, request: ProduceRequest) -> ProduceRequest:
    """With names or ids, as the version has them."""
    if version < TOPIC_IDS_FROM:
        return request
    ids = {"orders": TOPIC_ID}
    return ProduceRequest(
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            ProduceRequest.TopicData(
                topic_id=ids.get(topic.name, UNKNOWN_ID), partition_data=topic.partition_data
            )
            for topic in request.topic_data
        ],
    )


class Client:
    """Requests straight into the dispatcher of a broker with partitions of several kinds."""

    peer = "a test"
    is_closed = False

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.broker = Broker(directory, asyncio.get_running_loop())
        self.broker.host(partition=0)
        self.broker.host(partition=1)
        self.broker.host(partition=2, state=ELSEWHERE)
        self.broker.host(partition=3, state=WITH_FOLLOWER)
        self.at_close: dict[Any, Any] = {}
        self.answers: list[Any] = []
        self.dispatcher = Dispatcher(self.broker.services, "PLAINTEXT")
        self._exchanges = ExchangeQueue(self.answers.append)

    def send(self, version: int, request: ProduceRequest) -> None:
        sent = encode_request(ApiKey.PRODUCE, version, 3, "test", as_sent(version, request))
        frame = memoryview(bytearray(b"".join(bytes(part) for part in sent)[4:]))
        self.dispatcher.handle(cast(Connection, self), frame, self._exchanges.begin())

    def reported(self, versions: list[int]) -> list[Any]:
        texts = [b"".join(bytes(part) for part in answer)[4:] for answer in self.answers]
        return [
            decode_response(ApiKey.PRODUCE, version, text)
            for version, text in zip(versions, texts, strict=True)
        ]


class Model:
    """What a broker has to answer, from the kinds of batches alone."""

    def __init__(self) -> None:
        self.end_offsets = dict.fromkeys((LED, ALSO_LED, FOLLOWED), 0)
        # The last sequence and base offset of the one idempotent producer, by partition.
        self.sequences: dict[int, dict[int, int]] = {}

    def expect(self, version: int, request: ProduceRequest) -> list[tuple[int, int]]:
        """Error code and base offset of each row."""
        return [
            self._expect_one(version, request.acks, topic.name, part)
            for topic in request.topic_data
            for part in topic.partition_data
        ]

    def _expect_one(self, version: int, acks: int, topic: str, part: Any) -> tuple[int, int]:
        refusal = self._refusal(version, acks, topic, part)
        if refusal:
            return refusal, -1
        known = self.sequences.setdefault(part.index, {})
        sequence = int.from_bytes(part.records[53:57], "big", signed=True)
        if sequence >= 0:
            if sequence in known:
                return self._committed(acks, part.index), known[sequence]
            if known and sequence != max(known) + 2:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            known[sequence] = self.end_offsets[part.index]
        base_offset = self.end_offsets[part.index]
        self.end_offsets[part.index] += 2
        return self._committed(acks, part.index), base_offset

    @staticmethod
    def _committed(acks: int, index: int) -> int:
        """A follower in sync that never fetches keeps acks=all waiting until the time is over."""
        return ErrorCode.REQUEST_TIMED_OUT if acks == -1 and index == FOLLOWED else ErrorCode.NONE

    @staticmethod
    def _refusal(version: int, acks: int, topic: str, part: Any) -> int:
        if topic != "orders":
            if version >= TOPIC_IDS_FROM:
                return ErrorCode.UNKNOWN_TOPIC_ID
            if topic == "__consumer_offsets":
                return ErrorCode.INVALID_TOPIC_EXCEPTION
        if acks not in (-1, 0, 1):
            return ErrorCode.INVALID_REQUIRED_ACKS
        if topic != "orders" or part.index == MISSING:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len(part.records) > 22 and part.records[21:23] == TRANSACTIONAL_ATTRIBUTES:
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if part.index == LED_ELSEWHERE:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if len(part.records) < 61:
            return ErrorCode.INVALID_RECORD
        if part.records[-1] == DAMAGED_END:
            return ErrorCode.CORRUPT_MESSAGE
        return ErrorCode.NONE


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sent=st.lists(requests, min_size=1, max_size=6))
def test_answers_are_those_of_the_model(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[int, ProduceRequest]]
) -> None:
    async def run() -> None:
        client = Client(tmp_path_factory.mktemp("broker") / "data")
        try:
            await send_all(client)
        finally:
            client.broker.close()

    async def send_all(client: Client) -> None:
        model = Model()
        for number, (version, request) in enumerate(sent, 1):
            expected = model.expect(version, request)
            client.send(version, request)
            while len(client.answers) < number:
                await asyncio.sleep(0.001)
            response = client.reported([one for one, _ in sent[:number]])[-1][1]
            rows = [row for topic in response.responses for row in topic.partition_responses]
            assert [(row.error_code, row.base_offset) for row in rows] == expected
        for index, end_offset in model.end_offsets.items():
            assert client.broker.services.replicas.get("orders", index).log.log_end_offset == end_offset
        assert client.dispatcher.counters[ApiKey.PRODUCE].requests == len(sent)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def in_broker(tmp_path: Path, scenario: Callable[[Client], Any]) -> None:
    """Run a scenario with a broker and its client."""

    async def run() -> None:
        client = Client(tmp_path / "data")
        try:
            await scenario(client)
        finally:
            client.broker.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def to_all(partition: int, timeout_ms: int = 60_000) -> ProduceRequest:
    part = ProduceRequest.TopicData.PartitionData(index=partition, records=batch("plain", 0))
    return ProduceRequest(
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[ProduceRequest.TopicData(name="orders", partition_data=[part])],
    )


def codes(client: Client, version: int = 9) -> list[int]:
    """The error codes of all answers so far, each of one row."""
    responses = client.reported([version] * len(client.answers))
    return [response.responses[0].partition_responses[0].error_code for _, response in responses]


def test_acks_all_is_answered_in_the_order_of_offsets_as_the_follower_fetches(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        for _ in range(5):
            client.send(9, to_all(FOLLOWED))
        assert (client.answers, len(client.broker.services.waiting_produces)) == ([], 5)
        answered = []
        for fetched_to in (2, 3, 6, 10):
            partition.record_follower_fetch(BROKER_ID + 1, fetched_to)
            await asyncio.sleep(0)
            answered.append(len(client.answers))
        assert answered == [1, 1, 3, 5]
        assert codes(client) == [0] * 5
        offsets = [
            response.responses[0].partition_responses[0].base_offset
            for _, response in client.reported([9] * 5)
        ]
        assert offsets == [0, 2, 4, 6, 8]
        assert not client.broker.services.waiting_produces.watching

    in_broker(tmp_path, scenario)


def test_a_wake_up_looks_only_at_what_is_committed_and_the_next(tmp_path: Path) -> None:
    """A thousand parked requests do not cost each follower fetch a thousand looks."""

    async def scenario(client: Client) -> None:
        services = client.broker.services
        partition = services.replicas.get("orders", FOLLOWED)
        for _ in range(100):
            client.send(9, to_all(FOLLOWED))
        queue = services.waiting_produces.watching[partition.topic_partition]
        assert [wait.last_offset for wait in queue.waits] == list(range(1, 200, 2))
        partition.record_follower_fetch(BROKER_ID + 1, 4)
        await asyncio.sleep(0)
        assert len(queue.waits) == 98

    in_broker(tmp_path, scenario)


def test_a_produce_that_times_out_leaves_the_others_waiting(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        waiting = client.broker.services.waiting_produces
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        for timeout_ms in (60_000, 1, 60_000):
            client.send(9, to_all(FOLLOWED, timeout_ms))
        while len(waiting) > 2:
            await asyncio.sleep(0.001)
        queue = waiting.watching[partition.topic_partition]
        assert [wait.last_offset for wait in queue.waits] == [1, 5]
        assert codes(client) == []
        partition.record_follower_fetch(BROKER_ID + 1, 6)
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE]

    in_broker(tmp_path, scenario)


def test_a_produce_that_was_answered_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        for _ in range(10):
            client.send(9, to_all(FOLLOWED))
        assert parked_produces() == 10
        partition.record_follower_fetch(BROKER_ID + 1, 10)
        await asyncio.sleep(0)
        assert parked_produces() == 5

    def parked_produces() -> int:
        return sum(type(one) is DelayedProduce for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        in_broker(tmp_path, scenario)
    finally:
        gc.enable()


def test_a_parked_produce_fails_when_another_broker_leads(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        client.send(9, to_all(FOLLOWED))
        partition.become(ELSEWHERE._replace(leader_epoch=1))
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    in_broker(tmp_path, scenario)


def test_a_parked_produce_fails_when_leadership_was_lost_meanwhile(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        client.send(9, to_all(FOLLOWED))
        partition.become(ELSEWHERE._replace(leader_epoch=1))
        partition.become(WITH_FOLLOWER._replace(leader_epoch=2, partition_epoch=2))
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    in_broker(tmp_path, scenario)


def test_a_parked_produce_continues_waiting_when_its_leader_stays(tmp_path: Path) -> None:
    """A newer leader epoch of the same leader truncates nothing."""

    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        client.send(9, to_all(FOLLOWED))
        partition.become(WITH_FOLLOWER._replace(leader_epoch=1, partition_epoch=1))
        await asyncio.sleep(0)
        assert codes(client) == []
        partition.record_follower_fetch(BROKER_ID + 1, 2)
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.NONE]

    in_broker(tmp_path, scenario)


def test_a_parked_produce_learns_that_its_replica_is_gone(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        client.send(9, to_all(FOLLOWED))
        client.broker.services.replicas.drop(TopicPartition("orders", FOLLOWED))
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.KAFKA_STORAGE_ERROR]

    in_broker(tmp_path, scenario)


def test_an_isr_that_shrank_below_the_minimum_is_reported_after_the_append(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        partition = client.broker.services.replicas.get("orders", FOLLOWED)
        client.send(9, to_all(FOLLOWED))
        partition.log.config = partition.log.config.replace(min_insync_replicas=2)
        partition.record_follower_fetch(BROKER_ID + 1, 2)
        partition.become(WITH_FOLLOWER._replace(isr=(BROKER_ID,), partition_epoch=1))
        await asyncio.sleep(0)
        assert codes(client) == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]

    in_broker(tmp_path, scenario)
