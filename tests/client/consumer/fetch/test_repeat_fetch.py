"""Records that come one by one are asked for without the schema, and nothing is lost when that changes."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import AsyncConsumer, Consumer, Producer, TopicPartition
from odradek.client.consumer.errors import CorruptRecords
from odradek.client.consumer.fetch.fetcher import Fetcher
from odradek.client.consumer.fetch.repeat_fetch import InFlightFetch
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FetchRequest, FetchResponse, MetadataResponse
from odradek.protocol.structs import Message
from odradek.records.batch import MAGIC_POSITION
from odradek.records.builder import build_batch
from odradek.records.kernels.record_objects import Record
from odradek.testing import Cluster

PARTITIONS = 3
TOPIC_ID = bytes(range(16))
numbers = itertools.count()


@pytest.fixture(scope="module")
def producer(cluster: Cluster) -> Iterator[Producer[bytes, bytes]]:
    with Producer(bootstrap_servers=cluster.bootstrap, linger_ms=0) as producer:
        yield producer


@pytest.fixture
def unsteady(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many answers the fetcher itself took."""
    count: Counter[str] = Counter()
    on_response = Fetcher.on_response

    def counted(self: Fetcher, fetch: InFlightFetch, frame: memoryview | None) -> None:
        count["answers"] += 1
        on_response(self, fetch, frame)

    monkeypatch.setattr(Fetcher, "on_response", counted)
    return count


def read(consumer: Consumer[bytes, bytes], count: int) -> list[tuple[int, int, bytes | None]]:
    records: list[tuple[int, int, bytes | None]] = []
    while len(records) < count:
        polled = consumer.poll(20)
        assert polled, f"only {len(records)} of {count} records came"
        records += [(record.partition, record.offset, record.value) for record in polled]
    return records


def assigned(cluster: Cluster, topic: str, fetch_max_wait_ms: int) -> Consumer[bytes, bytes]:
    consumer: Consumer[bytes, bytes] = Consumer(
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=fetch_max_wait_ms,
    )
    consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
    return consumer


def test_records_that_come_one_by_one_need_the_fetcher_only_in_the_beginning(
    cluster: Cluster, producer: Producer[bytes, bytes], unsteady: Counter[str]
) -> None:
    assert producer.partitions_for("steady") == PARTITIONS
    with assigned(cluster, "steady", 10_000) as consumer:
        for number in range(60):
            partition, value = number % PARTITIONS, b"%d" % number
            sent = producer.send("steady", value, partition=partition)
            assert read(consumer, 1) == [(partition, number // PARTITIONS, value)]
            assert sent.result(20).offset == number // PARTITIONS
    # The first of all, and one that waits when the consumer closes.
    assert unsteady["answers"] <= 5


def test_an_answer_for_a_partition_that_was_given_up_meanwhile_stops_nothing(
    cluster: Cluster, producer: Producer[bytes, bytes]
) -> None:
    topic = "given-up"
    assert producer.partitions_for(topic) == PARTITIONS
    with assigned(cluster, topic, 10_000) as consumer:
        producer.send(topic, b"first", partition=0)
        assert read(consumer, 1) == [(0, 0, b"first")]
        # As in a rebalance, between what is revoked and what is assigned.
        consumer._on_loop(lambda: consumer._engine._drop([TopicPartition(topic, 1)]))
        producer.send(topic, b"not ours", partition=1).result(20)
        producer.send(topic, b"second", partition=0)
        assert read(consumer, 1) == [(0, 1, b"second")]


kinds = st.sampled_from(["send", "send", "send", "send three", "seek", "pause", "resume", "fewer", "all"])


@settings(max_examples=25)
@given(steps=st.lists(st.tuples(kinds, st.integers(0, PARTITIONS - 1)), min_size=1, max_size=25))
def test_whatever_changes_in_between_every_record_comes_in_order(
    cluster: Cluster, producer: Producer[bytes, bytes], steps: list[tuple[str, int]]
) -> None:
    topic = f"changing-{next(numbers)}"
    assert producer.partitions_for(topic) == PARTITIONS
    logs: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    with assigned(cluster, topic, 20) as consumer:
        every = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        positions, held, paused = [0] * PARTITIONS, set(range(PARTITIONS)), set()
        for kind, number in steps:
            partition = every[number]
            if kind.startswith("send"):
                for _ in range(3 if kind == "send three" else 1):
                    logs[number].append(b"%d" % len(logs[number]))
                    producer.send(topic, logs[number][-1], partition=number).result(20)
            elif kind in ("fewer", "all"):
                wanted = every if kind == "all" else every[: number + 1]
                consumer.assign(wanted)
                held = {one.partition for one in wanted}
                paused &= held
                for one in wanted:
                    consumer.seek(one, positions[one.partition])
            elif number not in held:
                continue
            elif kind == "seek":
                positions[number] = len(logs[number]) // 2
                consumer.seek(partition, positions[number])
            elif kind == "pause":
                consumer.pause([partition])
                paused.add(number)
            else:
                consumer.resume([partition])
                paused.discard(number)
            due = sum(len(logs[one]) - positions[one] for one in held - paused)
            for came, offset, value in read(consumer, due) if due else ():
                assert (offset, value) == (positions[came], logs[came][positions[came]])
                positions[came] += 1


class Script:
    """A partition whose fetches are answered with these records, one answer after another, in a session."""

    def __init__(self, broker: ScriptedBroker, answers: list[bytes]) -> None:
        self.broker = broker
        self.answers = answers
        self.epochs: list[int] = []
        broker.say |= {
            ApiKey.API_VERSIONS: lambda _: api_versions(ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FETCH),
            ApiKey.METADATA: self.metadata,
            ApiKey.FETCH: self.fetch,
        }

    def metadata(self, request: Message) -> MetadataResponse:
        answer = self.broker.metadata(request)
        row = MetadataResponse.Topics.Partitions(
            partition_index=0, leader_id=0, leader_epoch=1, replica_nodes=[0], isr_nodes=[0]
        )
        answer.topics = [MetadataResponse.Topics(name="t", topic_id=TOPIC_ID, partitions=[row])]
        return answer

    async def fetch(self, request: Message) -> FetchResponse:
        assert isinstance(request, FetchRequest)
        self.epochs.append(request.session_epoch)
        if not self.answers:
            await asyncio.sleep(0.2)
            return FetchResponse(session_id=7)
        row = FetchResponse.Responses.Partitions(
            high_watermark=9, preferred_read_replica=-1, records=self.answers.pop(0)
        )
        topic = FetchResponse.Responses(topic_id=TOPIC_ID, partitions=[row])
        return FetchResponse(session_id=7, responses=[topic])


def test_damage_in_a_repeated_fetch_is_reported_and_reading_continues_when_it_is_repaired():
    records = [bytes(build_batch([Record(n, 0, None, b"%d" % n, ())], base_offset=n)) for n in range(3)]

    damaged = bytearray(records[2])
    damaged[MAGIC_POSITION] = 9

    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            script = Script(broker, [records[0], records[1], bytes(damaged), records[2]])
            async with AsyncConsumer(bootstrap_servers=broker.address, retry_backoff_ms=5) as consumer:
                consumer.assign([TopicPartition("t", 0)])
                consumer.seek(TopicPartition("t", 0), 0)
                for value in (b"0", b"1"):
                    assert [record.value for record in await consumer.poll(20)] == [value]
                with pytest.raises(CorruptRecords, match="offset 2 of t-0"):
                    await consumer.poll(20)
                assert [record.value for record in await consumer.poll(20)] == [b"2"]
            assert script.epochs[:4] == [0, 1, 2, 3]

    run(scenario())
