"""What a broker has in a topic, read without the consumer under test."""

from __future__ import annotations

import asyncio

from odradek.client.config import from_keywords
from odradek.client.network.brokers import Brokers
from odradek.client.producer.config import ProducerConfig
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.records.batch import iterate_headers
from odradek.records.record import Record, read_records
from odradek.testing import Cluster

LIMIT = 64 * 1024 * 1024


def read_back(cluster: Cluster, topic: str) -> dict[int, list[Record]]:
    """All records by partition."""
    return asyncio.run(_read(cluster.bootstrap, topic))


async def _read(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    brokers = Brokers(from_keywords(ProducerConfig, {"bootstrap_servers": bootstrap}))
    try:
        brokers.metadata.want([topic])
        metadata = await brokers.ensure_fresh()
        found = {}
        for partition in sorted(metadata.topics[topic].partitions):
            found[partition] = await _read_partition(brokers, TopicPartition(topic, partition))
        return found
    finally:
        await brokers.close()


async def _read_partition(brokers: Brokers, partition: TopicPartition) -> list[Record]:
    records: list[Record] = []
    while True:
        row = FetchRequest.Topics.Partitions(
            partition=partition.partition, fetch_offset=len(records), partition_max_bytes=LIMIT
        )
        topics = [FetchRequest.Topics(topic=partition.topic, partitions=[row])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=LIMIT, session_epoch=-1, topics=topics)
        leader = brokers.metadata.leader(partition)
        assert leader is not None
        connection = await brokers.connection(leader.leader_id)
        answer = await connection.send_request(request, FetchResponse, max_version=12)
        (reported,) = answer.responses[0].partitions
        assert reported.error_code == 0
        if not reported.records:
            return records
        for position, _ in iterate_headers(reported.records):
            records += read_records(reported.records, position, max_bytes=LIMIT)
