from __future__ import annotations

import asyncio
from pathlib import Path

from odradek.net.broker_connection import BrokerConnections
from odradek.protocol.messages import CreateTopicsRequest, FetchRequest, MetadataRequest, ProduceRequest
from odradek.records.builder import build_batch_from_columns
from odradek.testing.simulation.cluster import SimulatedCluster, simulate
from odradek.testing.simulation.virtual_time import START_MS


async def create_topic(broker: BrokerConnections, name: str) -> bytes:
    topic = CreateTopicsRequest.Topics(name=name, num_partitions=1, replication_factor=1)
    created = await broker.send(0, CreateTopicsRequest(topics=[topic], timeout_ms=5000), version=7)
    assert created.topics[0].error_code == 0
    return created.topics[0].topic_id


async def produce(broker: BrokerConnections, name: str, value: bytes) -> None:
    batch = bytes(build_batch_from_columns([None], [value], [START_MS]))
    row = ProduceRequest.TopicData
    topics = [row(name=name, partition_data=[row.PartitionData(index=0, records=batch)])]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)
    produced = await broker.send(0, request, version=9)
    assert produced.responses[0].partition_responses[0].error_code == 0


async def fetch(broker: BrokerConnections, topic_id: bytes) -> bytes:
    partition = FetchRequest.Topics.Partitions(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchRequest.Topics(topic_id=topic_id, partitions=[partition])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1000, topics=topics)
    fetched = await broker.send(0, request, version=13)
    return bytes(fetched.responses[0].partitions[0].records)


def test_a_killed_broker_serves_what_it_acknowledged(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        await cluster.client_process("client").create_task(work(cluster))

    async def work(cluster: SimulatedCluster) -> None:
        broker = cluster.connections("client")
        topic_id = await create_topic(broker, "a")
        await produce(broker, "a", b"value")
        cluster.brokers[0].kill()
        await asyncio.sleep(1)
        await cluster.brokers[0].start()
        metadata = await broker.send(0, MetadataRequest(topics=None), version=12)
        assert metadata.topics[0].partitions[0].leader_id == 0
        assert b"value" in await fetch(broker, topic_id)

    simulate(scenario, seed=1, directory=tmp_path, brokers=1)


def test_a_power_cut_keeps_what_was_flushed(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster) -> bytes:
        await cluster.start()
        return await cluster.client_process("client").create_task(work(cluster))

    async def work(cluster: SimulatedCluster) -> bytes:
        broker = cluster.connections("client")
        topic_id = await create_topic(broker, "a")
        await produce(broker, "a", b"first")
        await asyncio.sleep(3)  # flush.ms
        await produce(broker, "a", b"second")
        cluster.brokers[0].kill(power_cut=True)
        await asyncio.sleep(1)
        await cluster.brokers[0].start()
        return await fetch(broker, topic_id)

    kept = simulate(
        scenario, seed=2, directory=tmp_path, brokers=1, settings={"log.flush.interval.ms": "1000"}
    )
    assert b"first" in kept
    assert b"second" not in kept
