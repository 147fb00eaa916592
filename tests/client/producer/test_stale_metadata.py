"""A producer whose view of the cluster is old: leaders move, topics grow, and records find their way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import pytest

from client.eventually import eventually
from client.reading import read_back
from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import Admin, AsyncProducer, Producer
from odradek.client.producer.errors import DeliveryTimedOut
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    InitProducerIdResponse,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.structs import Message
from odradek.records.errors import InvalidRecord
from odradek.records.kernels.hashes import murmur2, to_positive
from odradek.records.record import read_records
from odradek.testing import Cluster

TOPIC_ID = b"t" * 16
SERVED = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.INIT_PRODUCER_ID)
NOBODY = -1


class Partition:
    """One partition on two brokers: who leads it, and what was written. Metadata may be behind."""

    def __init__(self, brokers: list[ScriptedBroker], *, is_hinting: bool) -> None:
        self.leader = self.reported_leader = 0
        self.epoch = 0
        self.values: list[bytes | None] = []
        self.refusals = 0
        self._is_hinting = is_hinting
        self._brokers = brokers
        for broker in brokers:
            broker.cluster = brokers
            broker.say |= {
                ApiKey.API_VERSIONS: lambda _: api_versions(*SERVED),
                ApiKey.METADATA: self.metadata,
                ApiKey.INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=1, producer_epoch=0),
                ApiKey.PRODUCE: lambda request, broker=broker: self.produce(request, broker.node_id),
            }

    def move(self, leader: int, *, is_reported: bool = True) -> None:
        """Another broker leads from now on."""
        self.leader, self.epoch = leader, self.epoch + 1
        if is_reported:
            self.reported_leader = leader

    def metadata(self, request: Message) -> MetadataResponse:
        answer = self._brokers[0].metadata(request)
        row = MetadataResponse.Topics.Partitions(
            partition_index=0, leader_id=self.reported_leader, leader_epoch=self.epoch
        )
        answer.topics = [MetadataResponse.Topics(name="t", topic_id=TOPIC_ID, partitions=[row])]
        return answer

    def produce(self, request: Message, node_id: int) -> ProduceResponse:
        assert isinstance(request, ProduceRequest)
        row = ProduceResponse.Responses.PartitionResponses(index=0, base_offset=len(self.values))
        if node_id != self.leader:
            self.refusals += 1
            row.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if self._is_hinting:
                row.current_leader.leader_id, row.current_leader.leader_epoch = self.leader, self.epoch
        else:
            records = request.topic_data[0].partition_data[0].records
            assert records is not None
            self.values += [record.value for record in read_records(records, max_bytes=10**6)]
        return ProduceResponse(
            responses=[ProduceResponse.Responses(topic_id=TOPIC_ID, partition_responses=[row])]
        )


@asynccontextmanager
async def moving(
    is_hinting: bool, **settings: Any
) -> AsyncIterator[tuple[Partition, AsyncProducer[Any, Any]]]:
    async with ScriptedBroker(0) as one, ScriptedBroker(1) as other:
        partition = Partition([one, other], is_hinting=is_hinting)
        quick = {"retry_backoff_ms": 5, "reconnect_backoff_ms": 5, "linger_ms": 0}
        async with AsyncProducer(bootstrap_servers=one.address, **quick, **settings) as producer:
            yield partition, producer


@pytest.mark.parametrize("is_hinting", [False, True])
def test_records_follow_a_leader_that_moves(is_hinting: bool) -> None:
    async def scenario() -> None:
        async with moving(is_hinting) as (partition, producer):
            await producer.send_and_wait("t", b"0")
            for leader in (1, 0, 1):
                partition.move(leader)
                futures = [await producer.send("t", b"%d" % (leader + number)) for number in range(5)]
                for future in futures:
                    await future
            assert partition.refusals >= 3
            assert partition.values == [b"0", *(b"%d" % (start + n) for start in (1, 0, 1) for n in range(5))]

    run(scenario())


def test_a_leader_named_in_an_error_response_is_used_before_metadata_has_it() -> None:
    async def scenario() -> None:
        async with moving(is_hinting=True) as (partition, producer):
            await producer.send_and_wait("t", b"0")
            partition.move(1, is_reported=False)
            assert (await producer.send_and_wait("t", b"1")).offset == 1
            assert partition.refusals == 1

    run(scenario())


def test_a_partition_without_a_leader_is_waited_for_then_reported() -> None:
    async def scenario() -> None:
        settings = {"delivery_timeout_ms": 300, "request_timeout_ms": 200}
        async with moving(is_hinting=False, **settings) as (partition, producer):
            await producer.send_and_wait("t", b"0")
            partition.move(NOBODY)
            future = await producer.send("t", b"1")
            with pytest.raises(DeliveryTimedOut, match="the partition has no leader"):
                await future
            assert await producer.flush(20)
            partition.move(1)
            assert (await producer.send_and_wait("t", b"2")).offset == 1
            assert partition.values == [b"0", b"2"]

    run(scenario())


def test_partitions_that_come_later_are_found(cluster: Cluster, topic: str) -> None:
    with (
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
        Producer(bootstrap_servers=cluster.bootstrap, metadata_max_age_ms=100) as producer,
    ):
        admin.create_topic(topic, num_partitions=1)
        producer.send(topic, b"v", key=b"k").result(20)
        admin.create_partitions({topic: 4})
        assert producer.send(topic, b"v", partition=3).result(20).partition == 3, "asked for by name: at once"
        eventually(lambda: producer.partitions_for(topic) == 4)
        keys = [b"key %d" % number for number in range(50)]
        for key in keys:
            producer.send(topic, b"v", key=key)
        assert producer.flush(20)

    found = read_back(cluster, topic)
    for partition in range(4):
        mine = [record.key for record in found[partition] if record.key in keys]
        assert mine == [key for key in keys if to_positive(murmur2(key)) % 4 == partition]


def test_rows_of_a_table_for_partitions_that_came_later_are_delivered(cluster: Cluster, topic: str) -> None:
    with (
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
    ):
        admin.create_topic(topic, num_partitions=1)
        assert producer.partitions_for(topic) == 1
        admin.create_partitions({topic: 2})
        table = pa.table({"value": ["v"], "partition": [1]})
        (delivered,) = producer.send_table(topic, table).result(20)
        assert delivered.partition == 1
        admin.create_partitions({topic: 3})
        assert producer.partitions_for(topic) == 2
        assert producer.partitions_for(topic, at_least=3) == 3
        with pytest.raises(InvalidRecord, match="has 3 partitions, and no 3"):
            producer.send_table(topic, pa.table({"value": ["v"], "partition": [3]}))
