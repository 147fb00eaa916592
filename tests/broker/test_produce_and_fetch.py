from __future__ import annotations

import asyncio
import threading

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.log.files.file_system import FileSystem
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FetchRequest, ProduceRequest
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.record import Record, read_records
from odradek.replication.partition import LeaderAndIsrState

from .conftest import TOPIC_ID
from .on_this_loop import a_broker, create_topic
from .on_this_loop import run as run_here

TopicData = ProduceRequest.TopicData
Wanted = FetchRequest.Topics.Partitions


def a_batch(*values: bytes) -> bytes:
    records = [Record(n, 1_700_000_000_000, b"key", value) for n, value in enumerate(values)]
    return bytes(build_batch(records))


def a_produce(batch: bytes, *, acks: int = 1, topic: str = "orders", partition: int = 0) -> ProduceRequest:
    part = TopicData.PartitionData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=300, topic_data=[TopicData(name=topic, partition_data=[part])]
    )


def a_fetch(offset: int = 0, **settings: int) -> FetchRequest:
    max_bytes = settings.pop("partition_max_bytes", 1 << 20)
    wanted = Wanted(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        **({"min_bytes": 1} | settings), topics=[FetchRequest.Topics(topic="orders", partitions=[wanted])]
    )


def the_row(response):
    (topic,) = response.responses
    (row,) = getattr(topic, "partition_responses", None) or topic.partitions
    return row


def values_in(row) -> list[bytes]:
    raw = bytes(row.records)
    return [
        record.value
        for position, _ in iterate_headers(raw)
        for record in read_records(raw, position, max_bytes=1 << 20)
    ]


def test_what_was_produced_is_fetched(run):
    async def scenario(broker, wire):
        broker.host()
        for version in (3, 9):
            row = the_row(await wire.ask(ApiKey.PRODUCE, version, a_produce(a_batch(b"a", b"b"))))
            assert (row.error_code, row.log_append_time_ms) == (0, -1)
        assert row.base_offset == 2
        for version in (4, 11, 12):
            row = the_row(await wire.ask(ApiKey.FETCH, version, a_fetch()))
            assert values_in(row) == [b"a", b"b", b"a", b"b"]
            assert (row.high_watermark, row.last_stable_offset) == (4, 4)

    run(scenario)


def test_topic_ids_serve_the_newest_versions(run):
    async def scenario(broker, wire):
        broker.host()
        part = TopicData.PartitionData(index=0, records=a_batch(b"a"))
        produce = ProduceRequest(acks=-1, topic_data=[TopicData(topic_id=TOPIC_ID, partition_data=[part])])
        assert the_row(await wire.ask(ApiKey.PRODUCE, 13, produce)).error_code == 0
        wanted = Wanted(partition=0, fetch_offset=0, partition_max_bytes=1000)
        fetch = FetchRequest(topics=[FetchRequest.Topics(topic_id=TOPIC_ID, partitions=[wanted])])
        assert values_in(the_row(await wire.ask(ApiKey.FETCH, 18, fetch))) == [b"a"]
        produce.topic_data[0].topic_id = bytes(15) + b"x"
        assert the_row(await wire.ask(ApiKey.PRODUCE, 13, produce)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        fetch.topics[0].topic_id = bytes(15) + b"x"
        assert the_row(await wire.ask(ApiKey.FETCH, 13, fetch)).error_code == ErrorCode.UNKNOWN_TOPIC_ID

    run(scenario)


def test_a_fetch_in_the_middle_of_a_batch_returns_the_whole_batch(run):
    async def scenario(broker, wire):
        broker.host()
        await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"a", b"b", b"c")))
        assert values_in(the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(2)))) == [b"a", b"b", b"c"]

    run(scenario)


def test_the_first_batch_comes_even_if_it_is_larger_than_the_limits(run):
    async def scenario(broker, wire):
        broker.host()
        await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(bytes(5000))))
        await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"second")))
        row = the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(0, partition_max_bytes=10, max_bytes=10)))
        assert values_in(row) == [bytes(5000)]

    run(scenario)


def test_a_fetch_waits_for_data_and_no_longer_than_it_must(run):
    async def scenario(broker, wire):
        broker.host()
        producer = await broker.connect()
        wire.send(ApiKey.FETCH, 12, a_fetch(max_wait_ms=10_000))
        await asyncio.sleep(0.05)
        await producer.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"at last")))
        _, response = await wire.receive(ApiKey.FETCH, 12)
        assert values_in(the_row(response)) == [b"at last"]
        assert len(broker.services.waiting_fetches) == 0

        started = asyncio.get_running_loop().time()
        response = await wire.ask(ApiKey.FETCH, 12, a_fetch(1, max_wait_ms=100))
        assert bytes(the_row(response).records) == b""
        assert asyncio.get_running_loop().time() - started >= 0.09
        producer.writer.close()

    run(scenario)


def test_the_next_request_is_served_while_a_fetch_waits_but_answered_after_it(run):
    async def scenario(broker, wire):
        broker.host()
        wire.send(ApiKey.FETCH, 12, a_fetch(max_wait_ms=10_000))
        wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"own data")))
        _, fetched = await wire.receive(ApiKey.FETCH, 12)
        _, produced = await wire.receive(ApiKey.PRODUCE, 9)
        assert values_in(the_row(fetched)) == [b"own data"]
        assert the_row(produced).base_offset == 0

    run(scenario)


def test_without_acks_there_is_no_answer_and_an_error_closes_the_connection(run):
    async def scenario(broker, wire):
        broker.host()
        wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"silent"), acks=0))
        assert values_in(the_row(await wire_fetch(wire))) == [b"silent"]
        wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"lost"), acks=0, topic="nowhere"))
        assert await wire.reader.read() == b""

    async def wire_fetch(wire):
        asked = wire.send(ApiKey.FETCH, 12, a_fetch())
        answered, response = await wire.receive(ApiKey.FETCH, 12)
        assert answered == asked
        return response

    run(scenario)


@pytest.mark.parametrize(
    ("produce", "error"),
    [
        (a_produce(a_batch(b"x"), topic="nowhere"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (a_produce(a_batch(b"x"), partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (a_produce(a_batch(b"x"), acks=2), ErrorCode.INVALID_REQUIRED_ACKS),
        (a_produce(a_batch(b"x")[:-1]), ErrorCode.INVALID_RECORD),
        (a_produce(a_batch(b"x")[:-1] + b"?"), ErrorCode.CORRUPT_MESSAGE),
        (a_produce(b""), ErrorCode.INVALID_RECORD),
        (a_produce(a_batch(bytes(2000))), ErrorCode.MESSAGE_TOO_LARGE),
        (
            a_produce(a_batch(b"x")[:16] + b"\1" + a_batch(b"x")[17:]),
            ErrorCode.INVALID_RECORD,
        ),
    ],
)
def test_each_refusal_has_its_error_and_leaves_the_log_alone(run, produce, error):
    async def scenario(broker, wire):
        partition = broker.host(max_message_bytes=1000)
        assert the_row(await wire.ask(ApiKey.PRODUCE, 9, produce)).error_code == error
        assert partition.log.log_end_offset == 0

    run(scenario)


def test_a_broker_that_does_not_lead_names_the_one_that_does(run):
    async def scenario(broker, wire):
        broker.host(state=LeaderAndIsrState(5, 3, (5,), (5, 0), 1))
        row = the_row(await wire.ask(ApiKey.PRODUCE, 10, a_produce(a_batch(b"x"))))
        assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 5)
        row = the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(replica_id=5)))
        assert (row.error_code, row.current_leader.leader_epoch) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 3)

    run(scenario)


def test_acks_all_waits_for_the_other_replicas_until_the_time_is_over(run):
    async def scenario(broker, wire):
        broker.host(state=LeaderAndIsrState(0, 0, (0, 1), (0, 1), 0))
        row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), acks=-1)))
        assert row.error_code == ErrorCode.REQUEST_TIMED_OUT

        wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), acks=-1))
        await asyncio.sleep(0.05)
        broker.host(state=LeaderAndIsrState(0, 0, (0,), (0, 1), 1))
        _, response = await wire.receive(ApiKey.PRODUCE, 9)
        assert (the_row(response).error_code, the_row(response).base_offset) == (0, 1)

    run(scenario)


def test_too_few_replicas_in_sync_refuse_acks_all_only(run):
    async def scenario(broker, wire):
        broker.host(state=LeaderAndIsrState(0, 0, (0,), (0, 1), 0), min_insync_replicas=2)
        row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), acks=-1)))
        assert row.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x")))).error_code == 0

    run(scenario)


def test_an_offset_outside_of_the_log_is_reported(run):
    async def scenario(broker, wire):
        broker.host()
        row = the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(99, max_wait_ms=5000)))
        assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario)


class SlowToLoad(FileSystem):
    """A disk from which nothing comes until the test lets it."""

    __slots__ = ("let_go", "waiting")

    def __init__(self) -> None:
        self.waiting, self.let_go = threading.Event(), threading.Event()

    def is_cached(self, file, position, length):
        return False

    def load_into_cache(self, file, position, length):
        self.waiting.set()
        assert self.let_go.wait(20)


def test_a_read_that_waits_for_the_disk_keeps_nobody_else_waiting(run):
    async def scenario(broker, wire):
        log = broker.host().log
        await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"old")))
        log.directory.handles.files = disk = SlowToLoad()
        wire.send(ApiKey.FETCH, 12, a_fetch())
        await asyncio.to_thread(disk.waiting.wait, 20)
        other = await broker.connect()
        await other.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"new")))
        other.writer.transport.abort()
        disk.let_go.set()
        _, response = await wire.receive(ApiKey.FETCH, 12)
        assert values_in(the_row(response)) == [b"old", b"new"]

        # What was appended since is hot: it comes at once, whatever the disk does.
        disk.let_go.clear()
        assert values_in(the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(1)))) == [b"new"]

    run(scenario)


def test_fetch_max_bytes_of_the_broker_caps_what_a_client_asks_for(tmp_path):
    async def main():
        async with a_broker(tmp_path, "fetch.max.bytes=1024") as (_, wire):
            await create_topic(wire, "orders")
            for _ in range(4):
                await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(bytes(400))))
            sessions = ({}, {"session_epoch": -1})  # a session, and none: two ways through the broker
            for session in sessions:
                answer = await wire.ask(ApiKey.FETCH, 12, a_fetch(max_bytes=1 << 30, **session))
                assert len(values_in(the_row(answer))) == 2

    run_here(main)
