from __future__ import annotations

import asyncio
from pathlib import Path

from odradek.common.ids import TopicPartition
from odradek.net.broker_connection import BrokerConnections
from odradek.protocol.messages import (
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from odradek.records.builder import build_batch_from_columns
from odradek.testing.simulation.brokers import LARGEST_CLOCK_SKEW_MS
from odradek.testing.simulation.cluster import SimulatedCluster, simulate
from odradek.testing.simulation.end_checks import EndChecks
from odradek.testing.simulation.faults import Faults
from odradek.testing.simulation.transactions import TRANSACTION_TIMEOUT_MS
from odradek.testing.simulation.virtual_time import START_MS

PARTITION = TopicPartition("a", 0)
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
    "transaction.max.timeout.ms": "3600000",
}


async def create_topic(client: BrokerConnections, replicas: int) -> None:
    topic = CreateTopicsRequest.Topics(name=PARTITION.topic, num_partitions=1, replication_factor=replicas)
    created = await client.send(0, CreateTopicsRequest(topics=[topic], timeout_ms=5000), version=7)
    assert created.topics[0].error_code == 0


async def begin_transaction(client: BrokerConnections, timeout_ms: int) -> None:
    """A transaction with one partition, which nobody ends."""
    await create_topic(client, replicas=1)
    find = FindCoordinatorRequest(key="t", key_type=1)
    while (await client.send(0, find, version=3)).error_code:
        await asyncio.sleep(0.1)
    init = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=timeout_ms)
    while (producer := await client.send(0, init, version=4)).error_code:
        await asyncio.sleep(0.1)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.V3AndBelowTopics(name="a", partitions=[0])],
    )
    added = await client.send(0, add, version=3)
    assert added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code == 0


def settle(cluster: SimulatedCluster) -> EndChecks:
    return EndChecks(cluster, Faults(cluster, [PARTITION]), [PARTITION])


def test_a_transaction_is_waited_for_that_a_late_clock_keeps_open(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster) -> tuple[list[str], int]:
        (broker,) = cluster.brokers.values()
        await broker.start(clock_skew_ms=LARGEST_CLOCK_SKEW_MS)
        client = cluster.connections("client")
        await cluster.client_process("client").create_task(begin_transaction(client, TRANSACTION_TIMEOUT_MS))
        broker.kill()
        await broker.start(clock_skew_ms=-LARGEST_CLOCK_SKEW_MS)
        checks = settle(cluster)
        await checks.wait_until_settled(transactions=True)
        return checks.problems, checks.end_offset(PARTITION)

    problems, end_offset = simulate(scenario, seed=1, directory=tmp_path, brokers=1, settings=SETTINGS)
    assert problems == []
    assert end_offset == 1  # the marker of its end


def test_a_transaction_that_does_not_end_is_a_problem(tmp_path: Path) -> None:
    async def scenario(cluster: SimulatedCluster) -> list[str]:
        await cluster.start()
        client = cluster.connections("client")
        await cluster.client_process("client").create_task(begin_transaction(client, 3_600_000))
        checks = settle(cluster)
        await checks.wait_until_settled(transactions=True)
        return checks.problems

    (problem,) = simulate(scenario, seed=2, directory=tmp_path, brokers=1, settings=SETTINGS)
    assert problem.startswith("transaction t is Ongoing")


def test_a_follower_that_stays_behind_is_a_problem(tmp_path: Path) -> None:
    async def produce(client: BrokerConnections, leader: int) -> None:
        batch = bytes(build_batch_from_columns([None], [b"value"], [START_MS]))
        row = ProduceRequest.TopicData
        topics = [row(name="a", partition_data=[row.PartitionData(index=0, records=batch)])]
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)
        produced = await client.send(leader, request, version=9)
        assert produced.responses[0].partition_responses[0].error_code == 0

    async def scenario(cluster: SimulatedCluster) -> list[str]:
        await cluster.start()
        client, process = cluster.connections("client"), cluster.client_process("client")
        await process.create_task(create_topic(client, replicas=2))
        checks = settle(cluster)
        await checks.wait_until_settled(transactions=False)
        assert checks.problems == []
        state = Faults(cluster, [PARTITION]).state(PARTITION)
        assert state is not None
        cluster.network.cut("broker-0", "broker-1")
        cluster.network.cut("broker-1", "broker-0")
        await process.create_task(produce(client, state.leader))
        await checks.wait_until_settled(transactions=False)
        return checks.problems

    problems = simulate(scenario, seed=3, directory=tmp_path, brokers=2)
    assert any("ends at 0, the leader at 1" in problem for problem in problems)
