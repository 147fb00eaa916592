"""The short way of a produce request ends where the handler does, for any requests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.conftest import BROKER_ID, TOPIC_ID, Broker
from log.given_logs import a_batch
from odradek.broker.requests import short_ways
from odradek.broker.requests.dispatch import Dispatcher
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import ProduceRequest
from odradek.protocol.produce_frames import TOPIC_IDS_FROM
from odradek.records.compression import Codec
from odradek.replication.partition import LeaderAndIsrState

UNKNOWN_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000
ELSEWHERE = LeaderAndIsrState(BROKER_ID + 1, 0, (BROKER_ID + 1,), (BROKER_ID + 1,), 0)
WITH_FOLLOWER = LeaderAndIsrState(BROKER_ID, 0, (BROKER_ID,), (BROKER_ID, BROKER_ID + 1), 0)
TRANSACTIONAL_ATTRIBUTES = bytes.fromhex("0010")


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
            made[-1] ^= 1
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

    def told(self, versions: list[int]) -> list[Any]:
        texts = [b"".join(bytes(part) for part in answer)[4:] for answer in self.answers]
        return [
            decode_response(ApiKey.PRODUCE, version, text)
            for version, text in zip(versions, texts, strict=True)
        ]

    def logs(self) -> dict[Any, Any]:
        return {
            partition.topic_partition: [
                (path.name, path.read_bytes())
                for path in sorted(Path(partition.log.directory.path).iterdir())
                if path.suffix == ".log"
            ]
            for partition in self.broker.services.replicas
        }


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sent=st.lists(requests, min_size=1, max_size=6))
def test_both_ways_give_the_same_answers_and_logs(
    tmp_path_factory: pytest.TempPathFactory, sent: list[tuple[int, ProduceRequest]]
) -> None:
    directory = tmp_path_factory.mktemp("brokers")

    async def compare() -> None:
        short = Client(directory / "short")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(short_ways, "SHORT_WAYS", {})
            long = Client(directory / "long")
        try:
            await send_and_compare(short, long)
        finally:
            for client in (short, long):
                client.broker.close()

    async def send_and_compare(short: Client, long: Client) -> None:
        for version, request in sent:
            for client in (short, long):
                client.send(version, request)
                await asyncio.sleep(0.002)
        await asyncio.sleep(0.02)
        versions = [version for version, _ in sent]
        assert short.told(versions) == long.told(versions)
        assert short.logs() == long.logs()
        produced = [client.dispatcher.counters[ApiKey.PRODUCE] for client in (short, long)]
        assert produced[0].requests == produced[1].requests == len(sent)
        assert produced[0].response_bytes == produced[1].response_bytes

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(compare())


def test_produce_has_a_short_way() -> None:
    assert ApiKey.PRODUCE in short_ways.SHORT_WAYS
