"""The clients for code on a loop: the same promises, kept without blocking it."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import pyarrow as pa
import pytest

from client.scripted_broker import run
from odradek import AsyncConsumer, AsyncProducer, TopicPartition
from odradek.client.consumer.subscription import RebalanceListener
from odradek.client.errors import ClientClosed
from odradek.client.producer.errors import BufferExhausted, RecordTooLarge
from odradek.testing import Cluster


def test_what_is_sent_is_read(cluster: Cluster, topic: str) -> None:
    async def scenario() -> None:
        async with (
            AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer,
            AsyncConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            sent = await producer.send_and_wait(topic, b"0", key=b"k", partition=0, headers={"h": b"1"})
            assert (sent.topic, sent.partition, sent.offset) == (topic, 0, 0)
            futures = [await producer.send(topic, b"%d" % n, partition=0) for n in range(1, 1000)]
            assert [(await future).offset for future in futures] == list(range(1, 1000))

            consumer.assign([TopicPartition(topic, 0)])
            seen = []
            async for record in consumer:
                seen.append(int(record.value or b""))
                if len(seen) == 1000:
                    break
            assert seen == list(range(1000))
            consumer.seek(TopicPartition(topic, 0), 998)
            assert await consumer.position(TopicPartition(topic, 0)) == 998
            assert await consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 1000}
            assert [record.offset for record in await consumer.poll(10)] == [998, 999]

    run(scenario())


def test_tables_go_both_ways(cluster: Cluster, topic: str) -> None:
    async def scenario() -> None:
        async with (
            AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer,
            AsyncConsumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer,
        ):
            table = pa.table({"value": [b"%d" % n for n in range(5000)], "partition": [0] * 5000})
            (rows,) = await (await producer.send_table(topic, table))
            assert (rows.offset, rows.record_count) == (0, 5000)
            consumer.assign([TopicPartition(topic, 0)])
            values: list[bytes] = []
            while len(values) < 5000:
                values += (await consumer.poll_table(10)).column("value").to_pylist()
            assert values == table.column("value").to_pylist()

    run(scenario())


class Noting(RebalanceListener):
    def __init__(self) -> None:
        self.notes: list[str] = []

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.notes.append(f"assigned {len(partitions)}")


def test_a_group_shares_commits_and_awaits_its_listener(cluster: Cluster, topic: str) -> None:
    async def scenario() -> None:
        settings = {"group_id": topic, "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            for number in range(30):
                await producer.send(topic, b"%d" % number, partition=number % 3)
        listener, seen = Noting(), set()
        async with AsyncConsumer(bootstrap_servers=cluster.bootstrap, **settings) as consumer:
            consumer.subscribe([topic], listener=listener)
            while len(seen) < 30:
                seen |= {int(record.value or b"") for record in await consumer.poll(1)}
            await consumer.commit()
        assert listener.notes == ["assigned 3"]
        async with AsyncConsumer(bootstrap_servers=cluster.bootstrap, **settings) as consumer:
            partitions = [TopicPartition(topic, number) for number in range(3)]
            committed = await consumer.committed(partitions)
            assert [one.offset for one in committed.values() if one] == [10, 10, 10]

    run(scenario())


def test_waiting_for_memory_does_not_block_the_loop(cluster: Cluster, topic: str) -> None:
    async def scenario() -> None:
        async with AsyncProducer(
            bootstrap_servers=cluster.bootstrap, buffer_memory=20_000, batch_size=10_000
        ) as producer:
            futures = [await producer.send(topic, b"x" * 1000, partition=0) for _ in range(500)]
            assert [(await future).offset for future in futures] == list(range(500))
            with pytest.raises(RecordTooLarge, match="buffer_memory"):
                await producer.send(topic, b"x" * 30_000)

    run(scenario())


def test_memory_that_stays_full_is_reported(topic: str) -> None:
    async def scenario() -> None:
        async with await asyncio.to_thread(Cluster, num_partitions=1) as cluster:
            producer = AsyncProducer(
                bootstrap_servers=cluster.bootstrap, buffer_memory=20_000, batch_size=10_000, max_block_ms=300
            )
            assert await producer.partitions_for(topic) == 1
            await asyncio.to_thread(cluster.stop)
            with pytest.raises(BufferExhausted):  # noqa: PT012
                for _ in range(100):
                    await producer.send(topic, b"x" * 1000)
            await producer.close(0)
            await asyncio.to_thread(cluster.start)

    run(scenario())


def test_closed_clients_say_so(cluster: Cluster, topic: str) -> None:
    async def scenario() -> None:
        producer = AsyncProducer(bootstrap_servers=cluster.bootstrap)
        future = await producer.send(topic, b"v")
        await producer.close()
        await producer.close()
        assert (await future).offset == 0
        with pytest.raises(ClientClosed):
            await producer.send(topic, b"v")
        consumer = AsyncConsumer(bootstrap_servers=cluster.bootstrap)
        await consumer.close()
        with pytest.raises(ClientClosed):
            await consumer.poll()

    run(scenario())
