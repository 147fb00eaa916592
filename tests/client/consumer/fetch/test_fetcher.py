"""The fetcher: which requests it sends to which broker, and what it does with each kind of response."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

import pytest

from client.fetch_cluster import (
    PARTITIONS,
    FetchBroker,
    FetchCluster,
    Row,
    fetch_cluster,
    named,
    removed,
    until,
)
from client.scripted_broker import run
from odradek import AsyncConsumer
from odradek.client.consumer.errors import NoOffset
from odradek.client.consumer.fetch.fetcher import HURRIED_WAIT_MS
from odradek.client.consumer.positions import MOST_BUFFERED
from odradek.client.errors import BrokerError
from odradek.common.error_codes import ErrorCode
from odradek.protocol.messages import FetchRequest

ZERO, ONE = PARTITIONS
QUICK: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 20,
    "retry_backoff_ms": 5,
    "reconnect_backoff_ms": 5,
}

Consuming = AsyncConsumer[bytes, bytes]
Found = list[tuple[int, int]]


@asynccontextmanager
async def consuming(**settings: Any) -> AsyncIterator[tuple[FetchCluster, Consuming]]:
    async with (
        fetch_cluster() as cluster,
        AsyncConsumer(bootstrap_servers=cluster.brokers[0].address, **{**QUICK, **settings}) as consumer,
    ):
        yield cluster, consumer


async def read(consumer: Consuming, count: int) -> Found:
    """The next records: partition and offset of each."""
    found: Found = []
    while len(found) < count:
        polled = await consumer.poll(1)
        assert all(record.value == b"%d" % record.offset for record in polled)
        found += [(record.partition, record.offset) for record in polled]
    return found


def offsets(number: int, end: int, start: int = 0) -> Found:
    return [(number, offset) for offset in range(start, end)]


def session(request: FetchRequest) -> tuple[int, int]:
    return request.session_id, request.session_epoch


def error_row(number: int, code: ErrorCode, leader_id: int = -1, leader_epoch: int = -1) -> deque[Row]:
    leader = Row.CurrentLeader(leader_id=leader_id, leader_epoch=leader_epoch)
    return deque([Row(partition_index=number, error_code=code, current_leader=leader)])


def scenario(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def runs(**arguments: Any) -> None:
        run(test(**arguments))

    return runs


# Requests.


@scenario
async def test_each_partition_is_fetched_from_its_leader() -> None:
    async with consuming() as (cluster, consumer):
        cluster.leaders = {0: 0, 1: 1}
        cluster.ends.update({0: 3, 1: 2})
        consumer.assign(PARTITIONS)
        assert sorted(await read(consumer, 5)) == offsets(0, 3) + offsets(1, 2)
        for number, broker in enumerate(cluster.brokers):
            assert {partition for request in broker.fetches for partition, _ in named(request)} == {number}


@scenario
async def test_limits_are_sent_to_the_broker() -> None:
    limits = {"fetch_min_bytes": 7, "fetch_max_bytes": 5000, "max_partition_fetch_bytes": 300}
    async with consuming(**limits, client_rack="r", isolation_level="read_committed") as (cluster, consumer):
        consumer.assign([ZERO])
        await until(lambda: cluster.brokers[0].fetches)
        request = cluster.brokers[0].fetches[0]
        assert (request.min_bytes, request.max_bytes, request.max_wait_ms) == (7, 5000, 20)
        assert [one.partition_max_bytes for one in request.topics[0].partitions] == [300]
        assert (request.rack_id, request.isolation_level, request.replica_id) == ("r", 1, -1)


@scenario
async def test_a_session_is_opened_and_then_names_only_changes() -> None:
    async with consuming() as (cluster, consumer):
        broker = cluster.brokers[0]
        consumer.assign(PARTITIONS)
        await until(lambda: len(broker.fetches) == 2)
        cluster.ends[1] = 4
        await read(consumer, 4)
        await until(lambda: named(broker.fetches[-1]) or len(broker.fetches) > 20)
        first, second, *_, last = broker.fetches
        assert (session(first), sorted(named(first))) == ((0, 0), [(0, 0), (1, 0)])
        assert (session(second), named(second)) == ((1, 1), [])
        assert (session(last), named(last)) == ((1, len(broker.fetches) - 1), [(1, 4)])
        assert not any(map(removed, broker.fetches))


@scenario
async def test_a_paused_partition_is_removed_from_the_session_until_it_is_resumed() -> None:
    async with consuming() as (cluster, consumer):
        broker = cluster.brokers[0]
        consumer.assign(PARTITIONS)
        await until(lambda: len(broker.fetches) == 2)
        consumer.pause([ONE])
        await until(lambda: removed(broker.fetches[-1]) == [1])
        cluster.ends.update({0: 2, 1: 2})
        assert await read(consumer, 2) == offsets(0, 2)
        consumer.resume([ONE])
        assert await read(consumer, 2) == offsets(1, 2)
        assert session(broker.fetches[-1])[0] == 1


@scenario
async def test_a_revoked_partition_is_removed_from_the_session_and_its_records_are_dropped() -> None:
    async with consuming() as (cluster, consumer):
        broker = cluster.brokers[0]
        cluster.ends.update({0: 2, 1: 2})
        broker.is_ready.clear()
        consumer.assign(PARTITIONS)
        await until(lambda: broker.fetches)
        consumer.assign([ZERO])
        broker.is_ready.set()
        assert await read(consumer, 2) == offsets(0, 2)
        await until(lambda: len(broker.fetches) > 1)
        assert removed(broker.fetches[1]) == [1]
        assert await consumer.poll(0.05) == []


@scenario
async def test_buffered_responses_limit_further_fetches() -> None:
    async with consuming() as (cluster, consumer):
        broker = cluster.brokers[0]
        cluster.records_per_fetch = 1
        cluster.ends[0] = 10
        consumer.assign([ZERO])
        await until(lambda: len(broker.fetches) >= MOST_BUFFERED)
        await asyncio.sleep(0.05)
        assert [named(request) for request in broker.fetches] == [[(0, n)] for n in range(MOST_BUFFERED)]
        assert await read(consumer, 10) == offsets(0, 10)


@scenario
async def test_other_partitions_are_fetched_with_a_short_wait_while_one_is_full() -> None:
    async with consuming(fetch_max_wait_ms=1000) as (cluster, consumer):
        broker = cluster.brokers[0]
        cluster.records_per_fetch = 1
        cluster.ends[0] = 10
        consumer.assign(PARTITIONS)
        await until(lambda: removed(broker.fetches[-1]) == [0] if broker.fetches else False)
        assert broker.fetches[0].max_wait_ms == 1000
        assert broker.fetches[-1].max_wait_ms == HURRIED_WAIT_MS


# Positions.


@scenario
async def test_records_fetched_before_a_seek_are_dropped() -> None:
    async with consuming() as (cluster, consumer):
        broker = cluster.brokers[0]
        cluster.ends[0] = 8
        broker.is_ready.clear()
        consumer.assign([ZERO])
        await until(lambda: broker.fetches)
        consumer.seek(ZERO, 5)
        broker.is_ready.set()
        assert await read(consumer, 3) == offsets(0, 8, start=5)
        assert [named(request) for request in broker.fetches[:2]] == [[(0, 0)], [(0, 5)]]


@pytest.mark.parametrize(("reset", "start"), [("earliest", 0), ("latest", 2)])
@scenario
async def test_an_offset_out_of_range_is_reset(reset: str, start: int) -> None:
    async with consuming(auto_offset_reset=reset) as (cluster, consumer):
        cluster.ends[0] = 2
        cluster.brokers[0].rows[0] = error_row(0, ErrorCode.OFFSET_OUT_OF_RANGE)
        consumer.assign([ZERO])
        consumer.seek(ZERO, 50)
        await until(lambda: len(cluster.brokers[0].fetches) > 1)
        assert [named(request) for request in cluster.brokers[0].fetches[:2]] == [[(0, 50)], [(0, start)]]
        cluster.ends[0] = 4
        assert await read(consumer, 4 - start) == offsets(0, 4, start=start)


@scenario
async def test_an_offset_out_of_range_is_raised_without_a_reset() -> None:
    async with consuming(auto_offset_reset="none") as (cluster, consumer):
        cluster.ends[0] = 2
        cluster.brokers[0].rows[0] = error_row(0, ErrorCode.OFFSET_OUT_OF_RANGE)
        consumer.assign([ZERO])
        consumer.seek(ZERO, 50)
        with pytest.raises(NoOffset):
            await read(consumer, 1)
        consumer.seek(ZERO, 1)
        assert await read(consumer, 1) == [(0, 1)]


# Leaders and replicas.


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH])
@scenario
async def test_a_broker_that_no_longer_leads_has_the_metadata_refreshed(code: ErrorCode) -> None:
    async with consuming() as (cluster, consumer):
        old, new = cluster.brokers
        consumer.assign([ZERO])
        await until(lambda: old.fetches)
        requests = cluster.metadata_requests
        cluster.lead(0, 1)
        cluster.ends[0] = 3
        old.rows[0] = error_row(0, code)
        assert await read(consumer, 3) == offsets(0, 3)
        assert cluster.metadata_requests > requests
        assert new.fetches[0].topics[0].partitions[0].current_leader_epoch == cluster.leader_epoch


@scenario
async def test_a_leader_named_in_the_response_is_used_without_a_metadata_request() -> None:
    async with consuming(retry_backoff_ms=60_000) as (cluster, consumer):
        old, new = cluster.brokers
        consumer.assign([ZERO])
        await until(lambda: old.fetches)
        requests = cluster.metadata_requests
        cluster.lead(0, 1)
        cluster.ends[0] = 3
        old.rows[0] = error_row(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, cluster.leader_epoch)
        assert await read(consumer, 3) == offsets(0, 3)
        assert cluster.metadata_requests == requests
        assert new.fetches[0].topics[0].partitions[0].current_leader_epoch == cluster.leader_epoch


@scenario
async def test_the_preferred_replica_is_fetched_from_until_an_offset_is_out_of_its_range() -> None:
    async with consuming(client_rack="near") as (cluster, consumer):
        leader, follower = cluster.brokers
        leader.rows[0] = deque([Row(partition_index=0, preferred_read_replica=1)])
        consumer.assign([ZERO])
        cluster.ends[0] = 3
        assert await read(consumer, 3) == offsets(0, 3)
        assert len(leader.fetches) == 1
        follower.rows[0] = error_row(0, ErrorCode.OFFSET_OUT_OF_RANGE)
        await until(lambda: len(leader.fetches) > 1)
        assert named(leader.fetches[1]) == [(0, 3)], "the position is not reset"
        cluster.ends[0] = 5
        assert await read(consumer, 2) == offsets(0, 5, start=3)


@scenario
async def test_an_error_that_is_not_retriable_is_raised_for_its_partition_only() -> None:
    async with consuming() as (cluster, consumer):
        cluster.brokers[0].rows[0] = error_row(0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        cluster.ends[1] = 2
        consumer.assign(PARTITIONS)
        with pytest.raises(BrokerError, match="t-0") as caught:
            await read(consumer, 3)
        assert caught.value.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await read(consumer, 2) == offsets(1, 2)


# Sessions and connections that fail.


async def open_session(cluster: FetchCluster, consumer: Consuming) -> FetchBroker:
    broker = cluster.brokers[0]
    consumer.assign(PARTITIONS)
    await until(lambda: len(broker.fetches) >= 2)
    assert session(broker.fetches[1]) == (1, 1)
    return broker


@pytest.mark.parametrize(
    ("code", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 1),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 1),
    ],
)
@scenario
async def test_after_a_session_error_another_session_is_opened(code: ErrorCode, session_id: int) -> None:
    async with consuming(retry_backoff_ms=60_000) as (cluster, consumer):
        broker = await open_session(cluster, consumer)
        broker.faults.append(code)
        await until(lambda: not broker.faults)
        cluster.ends.update({0: 2, 1: 2})
        assert sorted(await read(consumer, 4)) == offsets(0, 2) + offsets(1, 2)
        (reopened,) = [request for request in broker.fetches[1:] if request.session_epoch == 0]
        assert (session(reopened), sorted(named(reopened))) == ((session_id, 0), [(0, 0), (1, 0)])
        assert broker.session_id == 2


@scenario
async def test_a_session_that_cannot_be_opened_is_tried_again_after_a_backoff() -> None:
    async with consuming(retry_backoff_ms=50) as (cluster, consumer):
        broker = await open_session(cluster, consumer)
        broker.faults.extend([ErrorCode.FETCH_SESSION_ID_NOT_FOUND] * 4)
        start = time.monotonic()
        await until(lambda: not broker.faults)
        assert time.monotonic() - start >= 2 * 0.05, "the first error is repeated at once, later ones are not"
        assert all(len(named(request)) == 2 for request in broker.fetches if request.session_epoch == 0)
        cluster.ends[0] = 2
        assert await read(consumer, 2) == offsets(0, 2)


@scenario
async def test_a_broken_connection_is_replaced_and_a_session_opened() -> None:
    async with consuming() as (cluster, consumer):
        cluster.records_per_fetch = 1
        cluster.ends.update({0: 3, 1: 3})
        broker = await open_session(cluster, consumer)
        broker.faults.append(None)
        found = await read(consumer, 6)
        await until(lambda: broker.session_id == 2)
        cluster.ends[0] = 5
        found += await read(consumer, 2)
        assert sorted(found) == offsets(0, 5) + offsets(1, 3), "each record once"
        (reopened,) = [request for request in broker.fetches[1:] if request.session_epoch == 0]
        assert session(reopened) == (0, 0)
