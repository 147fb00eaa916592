"""A request that names very many things is answered while others are served, not before them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import uvloop

from net.serving import serve
from odradek.broker.handlers import fetch, produce
from odradek.broker.requests.cooperative_yield import STEPS_PER_YIELD, CooperativeYield
from odradek.broker.requests.dispatch import Dispatcher
from odradek.net.server import Listener
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AlterConfigsRequest,
    AlterReplicaLogDirsRequest,
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from odradek.protocol.structs import Message
from odradek.records.kernels.layout import HEADER_SIZE

from ..conftest import Wire
from ..on_this_loop import PATIENCE_SECONDS, a_broker, until
from ..wire import a_batch

MANY = 10 * STEPS_PER_YIELD
NUMBERS = list(range(MANY))
NAMES = [f"unknown-{number}" for number in NUMBERS]


class Served(NamedTuple):
    """A broker on the test's loop, with a dispatcher whose counters tell what is under way."""

    runner: asyncio.Runner
    dispatcher: Dispatcher
    listener: Listener

    def run(self, scenario: Any) -> Any:
        async def in_time() -> Any:
            return await asyncio.wait_for(scenario, PATIENCE_SECONDS)

        return self.runner.run(in_time())

    async def connect(self) -> Wire:
        return Wire(*await asyncio.open_connection("127.0.0.1", self.listener.port))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        running = a_broker(tmp_path_factory.mktemp("broker"))
        server, _ = runner.run(running.__aenter__())
        dispatcher = Dispatcher(server.services, "PLAINTEXT")
        listener = Listener(dispatcher.handle)
        runner.run(_start(listener))
        yield Served(runner, dispatcher, listener)
        listener.close()
        runner.run(running.__aexit__(None, None, None))


async def _start(listener: Listener) -> None:
    serve(listener)


async def served_meanwhile(broker: Served, api_key: ApiKey, version: int, huge: Message) -> int:
    """How often a neighbour is answered after the huge request was read and before it is answered."""
    client, neighbour = await broker.connect(), await broker.connect()
    await neighbour.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    counters = broker.dispatcher.counters[api_key]
    requests, response_bytes = counters.requests, counters.response_bytes
    answered = 0
    client.send(api_key, version, huge)
    while counters.requests == requests:
        await asyncio.sleep(0)
    while counters.response_bytes == response_bytes:
        await neighbour.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        answered += counters.response_bytes == response_bytes
    await client.receive(api_key, version)
    for wire in (client, neighbour):
        wire.writer.transport.abort()
    return answered


def test_others_run_after_so_many_steps() -> None:
    async def count() -> list[int]:
        yielding, done, seen = CooperativeYield(steps_per_yield=10), 0, []

        async def look() -> None:
            while done < 40:
                seen.append(done)
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        async for _ in yielding.over(range(40)):
            done += 1
        await looking
        return seen

    assert asyncio.run(count()) == [10, 20, 30]


def produced(partitions: list[int], value: bytes, *, topic: str = "orders") -> ProduceRequest.TopicData:
    """One batch of one record for each partition."""
    batch = a_batch(value)
    part = ProduceRequest.TopicData.PartitionData
    return ProduceRequest.TopicData(
        name=topic, partition_data=[part(index=index, records=batch) for index in partitions]
    )


def of_each(row: Any, field: str) -> list[Any]:
    """So many rows that differ in a name or number."""
    values: list[Any] = NUMBERS if field.startswith("partition") else NAMES
    return [row(**{field: value}) for value in values]


REQUESTS: list[tuple[ApiKey, int, Callable[[], Message]]] = [
    (
        ApiKey.LIST_OFFSETS,
        7,
        lambda: ListOffsetsRequest(topics=of_each(ListOffsetsRequest.Topics, "name")),
    ),
    (
        ApiKey.METADATA,
        9,
        lambda: MetadataRequest(
            topics=of_each(MetadataRequest.Topics, "name"), allow_auto_topic_creation=False
        ),
    ),
    (
        ApiKey.OFFSET_COMMIT,
        8,
        lambda: OffsetCommitRequest(group_id="g", topics=of_each(OffsetCommitRequest.Topics, "name")),
    ),
    (
        ApiKey.OFFSET_FETCH,
        8,
        lambda: OffsetFetchRequest(groups=of_each(OffsetFetchRequest.Groups, "group_id")),
    ),
    (ApiKey.FIND_COORDINATOR, 4, lambda: FindCoordinatorRequest(key_type=7, coordinator_keys=NAMES)),
    (ApiKey.DESCRIBE_GROUPS, 5, lambda: DescribeGroupsRequest(groups=NAMES)),
    (
        ApiKey.CREATE_TOPICS,
        7,
        lambda: CreateTopicsRequest(
            topics=of_each(CreateTopicsRequest.Topics, "name") + of_each(CreateTopicsRequest.Topics, "name")
        ),
    ),
    (ApiKey.DELETE_TOPICS, 5, lambda: DeleteTopicsRequest(topic_names=NAMES, timeout_ms=-1)),
    (
        ApiKey.DELETE_RECORDS,
        2,
        lambda: DeleteRecordsRequest(topics=of_each(DeleteRecordsRequest.Topics, "name")),
    ),
    (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda: OffsetForLeaderEpochRequest(topics=of_each(OffsetForLeaderEpochRequest.Topics, "topic")),
    ),
    (
        ApiKey.DESCRIBE_CONFIGS,
        4,
        lambda: DescribeConfigsRequest(resources=of_each(DescribeConfigsRequest.Resources, "resource_name")),
    ),
    (
        ApiKey.ALTER_CONFIGS,
        2,
        lambda: AlterConfigsRequest(resources=of_each(AlterConfigsRequest.Resources, "resource_name")),
    ),
    (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda: IncrementalAlterConfigsRequest(
            resources=of_each(IncrementalAlterConfigsRequest.Resources, "resource_name")
        ),
    ),
    (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        lambda: AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.Dirs(
                    path="elsewhere",
                    topics=[AlterReplicaLogDirsRequest.Dirs.Topics(name="t", partitions=NUMBERS)],
                )
            ]
        ),
    ),
    (
        ApiKey.CREATE_PARTITIONS,
        3,
        lambda: CreatePartitionsRequest(
            topics=of_each(CreatePartitionsRequest.Topics, "name"), timeout_ms=-1
        ),
    ),
    (ApiKey.DELETE_GROUPS, 2, lambda: DeleteGroupsRequest(groups_names=NAMES)),
    (
        ApiKey.DESCRIBE_PRODUCERS,
        0,
        lambda: DescribeProducersRequest(topics=of_each(DescribeProducersRequest.Topics, "name")),
    ),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0, lambda: ConsumerGroupDescribeRequest(group_ids=NAMES)),
    (
        ApiKey.PRODUCE,
        9,
        lambda: ProduceRequest(acks=1, topic_data=[produced([0], b"x", topic=name) for name in NAMES]),
    ),
]


@pytest.mark.parametrize(
    ("api_key", "version", "huge"), REQUESTS, ids=lambda value: getattr(value, "name", "")
)
def test_many_names_in_one_request_keep_nobody_waiting(
    broker: Served, api_key: ApiKey, version: int, huge: Callable[[], Message]
) -> None:
    assert broker.run(served_meanwhile(broker, api_key, version, huge())) >= 2


def many_partitions(topic: Any, **name: str) -> list[Any]:
    """One topic with very many of them."""
    field = "partition" if hasattr(topic.Partitions(), "partition") else "partition_index"
    return [topic(partitions=of_each(topic.Partitions, field), **name)]


@pytest.mark.parametrize(
    ("api_key", "version", "huge"),
    [
        (
            ApiKey.LIST_OFFSETS,
            7,
            lambda: ListOffsetsRequest(topics=many_partitions(ListOffsetsRequest.Topics)),
        ),
        (
            ApiKey.OFFSET_COMMIT,
            8,
            lambda: OffsetCommitRequest(topics=many_partitions(OffsetCommitRequest.Topics)),
        ),
        (
            ApiKey.DELETE_RECORDS,
            2,
            lambda: DeleteRecordsRequest(topics=many_partitions(DeleteRecordsRequest.Topics)),
        ),
        (
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            4,
            lambda: OffsetForLeaderEpochRequest(topics=many_partitions(OffsetForLeaderEpochRequest.Topics)),
        ),
        (
            ApiKey.PRODUCE,
            9,
            lambda: ProduceRequest(acks=1, topic_data=[produced(NUMBERS, b"x")]),
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_many_partitions_in_one_request_keep_nobody_waiting(
    broker: Served, api_key: ApiKey, version: int, huge: Callable[[], Message]
) -> None:
    assert broker.run(served_meanwhile(broker, api_key, version, huge())) >= 2


# Produce requests that yield between batches

WITHOUT_SHORT_WAY = 8


@pytest.fixture
def yield_after_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "STEPS_PER_YIELD", 2)
    monkeypatch.setattr(produce, "BATCHES_PER_YIELD", 1)


@pytest.mark.usefixtures("yield_after_every_batch")
def test_what_a_client_sends_behind_such_a_produce_does_not_overtake_it(run: Callable[[Any], None]) -> None:
    async def scenario(broker: Any, wire: Wire) -> None:
        for number in range(3):
            broker.host(partition=number)
        for partitions in ([0, 1, 2], [2], [2]):
            request = ProduceRequest(acks=1, topic_data=[produced(partitions, b"x")])
            wire.send(ApiKey.PRODUCE, WITHOUT_SHORT_WAY, request)
        for expected in ([0, 0, 0], [1], [2]):
            _, response = await wire.receive(ApiKey.PRODUCE, WITHOUT_SHORT_WAY)
            (topic,) = response.responses
            assert [row.base_offset for row in topic.partition_responses] == expected

    run(scenario)


@pytest.mark.usefixtures("yield_after_every_batch")
def test_what_others_send_meanwhile_does_not_write_over_its_records(run: Callable[[Any], None]) -> None:
    async def scenario(broker: Any, wire: Wire) -> None:
        hosted = [broker.host(partition=number) for number in range(5)]
        neighbour = await broker.connect()
        own = ProduceRequest(acks=1, topic_data=[produced([0, 1, 2, 3], b"a" * 1000)])
        wire.send(ApiKey.PRODUCE, WITHOUT_SHORT_WAY, own)
        other = ProduceRequest(acks=1, topic_data=[produced([4, 4], b"b" * 5000)])
        await neighbour.ask(ApiKey.PRODUCE, WITHOUT_SHORT_WAY, other)
        _, response = await wire.receive(ApiKey.PRODUCE, WITHOUT_SHORT_WAY)
        neighbour.writer.close()
        (topic,) = response.responses
        assert [row.error_code for row in topic.partition_responses] == [0, 0, 0, 0]
        for partition in hosted[:4]:
            found = partition.log.read(0, 10_000).range.read()
            assert b"a" * 1000 in found
            assert b"b" not in found[HEADER_SIZE:]  # a checksum may well have one

    run(scenario)


@pytest.mark.usefixtures("yield_after_every_batch")
def test_a_client_that_leaves_meanwhile_has_its_batches_appended_and_its_connection_ends(
    run: Callable[[Any], None],
) -> None:
    async def scenario(broker: Any, wire: Wire) -> None:
        hosted = [broker.host(partition=number) for number in range(50)]
        client = await broker.connect()
        request = ProduceRequest(acks=1, topic_data=[produced(list(range(50)), b"x")])
        client.send(ApiKey.PRODUCE, WITHOUT_SHORT_WAY, request)
        await until(lambda: hosted[0].log.log_end_offset)
        client.writer.transport.abort()
        await until(lambda: broker.listener.connection_count == 1)
        assert [partition.log.log_end_offset for partition in hosted] == [1] * 50
        assert await wire.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

    run(scenario)


# Partitions that are wanted


def fetched_partitions() -> list[FetchRequest.Topics]:
    wanted = FetchRequest.Topics.Partitions
    rows = [wanted(partition=number, partition_max_bytes=1000) for number in NUMBERS]
    return [FetchRequest.Topics(topic="unknown", partitions=rows)]


def fetched_topics() -> list[FetchRequest.Topics]:
    wanted = FetchRequest.Topics.Partitions
    return [FetchRequest.Topics(topic=name, partitions=[wanted(partition=0)]) for name in NAMES]


@pytest.mark.parametrize("topics", [fetched_partitions, fetched_topics])
@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_fetch_of_many_partitions_keeps_nobody_waiting(
    broker: Served, topics: Callable[[], list[FetchRequest.Topics]], session_epoch: int
) -> None:
    request = FetchRequest(min_bytes=1, max_bytes=1000, session_epoch=session_epoch, topics=topics())
    assert broker.run(served_meanwhile(broker, ApiKey.FETCH, 12, request)) >= 2


def test_a_fetch_that_yielded_waits_for_data_in_any_of_its_partitions(
    run: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "STEPS_PER_YIELD", 2)

    async def scenario(broker: Any, wire: Wire) -> None:
        partitions = [broker.host(partition=number) for number in range(3)]
        wanted = [FetchRequest.Topics.Partitions(partition=n, partition_max_bytes=1000) for n in range(3)]
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1000,
            topics=[FetchRequest.Topics(topic="orders", partitions=wanted)],
        )
        wire.send(ApiKey.FETCH, 12, request)
        await until(lambda: len(broker.services.waiting_fetches))
        append(broker, partitions[1])
        _, response = await wire.receive(ApiKey.FETCH, 12)
        (topic,) = response.responses
        assert [bool(row.records) for row in topic.partitions] == [False, True, False]

    run(scenario)


def test_a_session_that_changes_while_it_is_read_is_answered_as_it_was_asked(
    run: Callable[[Any], None],
) -> None:
    async def scenario(broker: Any, wire: Wire) -> None:
        append(broker, broker.host("unknown"))
        few, many = fetched_partitions(), fetched_partitions()
        few[0].partitions = few[0].partitions[:1]
        forgotten = FetchRequest.ForgottenTopicsData(topic="unknown", partitions=NUMBERS[1:])
        limits = {"min_bytes": 1, "max_bytes": 1000}

        begun = await wire.ask(ApiKey.FETCH, 12, FetchRequest(session_epoch=0, topics=few, **limits))
        limits["session_id"] = begun.session_id
        wire.send(ApiKey.FETCH, 12, FetchRequest(session_epoch=1, topics=many, **limits))
        wire.send(
            ApiKey.FETCH, 12, FetchRequest(session_epoch=2, forgotten_topics_data=[forgotten], **limits)
        )

        for expected in (NUMBERS, [0]):
            _, response = await wire.receive(ApiKey.FETCH, 12)
            (topic,) = response.responses
            assert [row.partition_index for row in topic.partitions] == expected
            assert [row.partition_index for row in topic.partitions if row.records] == [0]

    run(scenario)


def append(broker: Any, partition: Any) -> None:
    partition.append(bytearray(a_batch(b"x")), required_acks=1, now_ms=broker.clock.now_ms())
