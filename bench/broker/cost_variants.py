"""Produce and fetch requests beside the plain ones of `request_cost.py`: replicas, ACLs, an open transaction.

Each figure stands beside the same request without the variant, measured in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from broker.fetch_loads import FETCH_LOADS, LIBRDKAFKA_VERSION, FetchLoad, Reader
from odradek.broker.security.acls import ANONYMOUS
from odradek.broker.security.authorizer import AclAuthorizer
from odradek.broker.server import BrokerServer
from odradek.common.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request
from odradek.protocol.messages import FetchRequest
from odradek.records.builder import build_batch_from_columns
from odradek.replication.partition import LeaderAndIsrState, Partition

REPLICATED_TOPIC, OPEN_TOPIC, ABORTED_TOPIC = "replicated", "open", "aborted"
TRANSACTIONAL_TOPIC, TRANSACTIONAL_ID = "transactional", "bench"
PRODUCER_ID = 7
FOLLOWERS = (1, 2)
ACL_COUNT = 1_000

OPEN_LOADS = tuple(
    replace(load, name=f"{load.name}, read_committed, a transaction open", topic=f"{OPEN_TOPIC}-{load.topic}")
    for load in FETCH_LOADS
    if load.version == LIBRDKAFKA_VERSION
)
# A fetch of 64 KiB has four batches, so that it brings one aborted transaction, and one of 1 MiB sixteen.
ABORTED_EVERY = 4
ABORTED_LOADS = tuple(
    replace(
        load,
        name=f"{load.name}, {load.max_bytes >> 16} aborted",
        topic=f"{ABORTED_TOPIC}-{load.topic}",
        aborted_every=ABORTED_EVERY,
    )
    for load in FETCH_LOADS
    if load.version == LIBRDKAFKA_VERSION and load.records_per_batch > 1
)


def topics() -> set[str]:
    """The topics that these requests need, each of one partition."""
    loads = (*OPEN_LOADS, *ABORTED_LOADS)
    return {REPLICATED_TOPIC, TRANSACTIONAL_TOPIC, *(load.topic for load in loads)}


def replicate(server: BrokerServer) -> Partition:
    """Have this broker lead a partition with two followers in sync, which only this process plays."""
    partition = server.services.replicas.get(REPLICATED_TOPIC, 0)
    replicas = (partition.broker_id, *FOLLOWERS)
    state = partition.state
    partition.become(
        LeaderAndIsrState(
            partition.broker_id, state.leader_epoch + 1, replicas, replicas, state.partition_epoch + 1
        )
    )
    return partition


def follower_fetches(partition: Partition, first_offset: int, step: int) -> Iterator[list[memoryview]]:
    """The fetches of both followers at that offset, and at each `step` offsets later."""
    for offset in count(first_offset, step):
        yield fetches_of_followers(partition, offset)


def fetches_of_followers(partition: Partition, offset: int) -> list[memoryview]:
    """The fetches of both followers at that offset."""
    return [_follower_fetch(partition, follower, offset) for follower in FOLLOWERS]


def fetch_of_a_follower(partition: Partition, offset: int) -> tuple[int, memoryview]:
    """The version and the frame of such a fetch."""
    return LIBRDKAFKA_VERSION, _follower_fetch(partition, FOLLOWERS[0], offset)


def _follower_fetch(partition: Partition, follower: int, offset: int) -> memoryview:
    topic = FetchRequest.Topics(topic_id=partition.topic_id)
    topic.partitions = [
        topic.Partitions(
            partition=0,
            current_leader_epoch=partition.leader_epoch,
            fetch_offset=offset,
            partition_max_bytes=1 << 20,
        )
    ]
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=10 << 20,
        session_epoch=-1,
        replica_state=FetchRequest.ReplicaState(replica_id=follower),
        topics=[topic],
    )
    parts = encode_request(ApiKey.FETCH, LIBRDKAFKA_VERSION, 1, "follower", request)
    return memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))


def open_transaction(server: BrokerServer, load: FetchLoad) -> Reader:
    """A log as the plain row has it, with a batch of a transaction that has not ended behind it."""
    reader = Reader(server, load)
    begin_transaction(server, load.topic)
    return reader


def begin_transaction(server: BrokerServer, topic: str) -> Partition:
    """Have a transaction open in a partition, of one record, without its coordinator."""
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch_from_columns(
        [None],
        [b"uncommitted"],
        [now_ms],
        producer_id=PRODUCER_ID,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    partition = server.services.replicas.get(topic, 0)
    if partition.log.last_stable_offset == partition.log.high_watermark:
        partition.append(memoryview(bytearray(batch)), 1, now_ms)
    assert partition.log.last_stable_offset < partition.log.high_watermark
    return partition


def authorizer_with_acls() -> AclAuthorizer:
    """Allows everything each topic of the bench by one of very many ACLs."""

    def entry(principal: str) -> tuple[AccessControlEntry, ...]:
        return (AccessControlEntry(principal, "*", AclOperation.ALL, AclPermissionType.ALLOW),)

    acls = {
        ResourcePattern(ResourceType.TOPIC, f"topic-{number}", PatternType.LITERAL): entry(f"User:{number}")
        for number in range(ACL_COUNT - 1)
    }
    acls[ResourcePattern(ResourceType.TOPIC, "*", PatternType.LITERAL)] = entry(ANONYMOUS)
    authorizer = AclAuthorizer()
    authorizer.replace_all(acls)
    return authorizer
