"""The short way of a fetch request ends where the handler does, for any requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.conftest import BROKER_ID, TOPIC_ID, Broker
from log.given_logs import a_batch
from odradek.broker import short_ways
from odradek.broker.dispatch import Dispatcher
from odradek.broker.handlers import short_fetch
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import TOPIC_IDS_FROM
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import FetchRequest
from odradek.replication.partition import PartitionState

assert short_fetch
NOW_MS = 1_700_000_000_000
UNKNOWN_ID = bytes(range(16))
ELSEWHERE = PartitionState(BROKER_ID + 1, 0, (BROKER_ID + 1,), (BROKER_ID + 1,), 0)
WITH_FOLLOWER = PartitionState(BROKER_ID, 0, (BROKER_ID, BROKER_ID + 1), (BROKER_ID, BROKER_ID + 1), 0)
PLAIN, FEW, LED_ELSEWHERE, FOLLOWED, OPEN_TRANSACTION, MISSING = range(6)
BATCHES = 30
FLEXIBLE_FROM = 12


class Step(NamedTuple):
    """A request, or what happens to a partition before the next one."""

    what: str
    version: int = 16
    request: FetchRequest | None = None
    partition: int = 0
    number: int = 0


class Client:
    """Requests straight into the dispatcher of a broker with partitions of several kinds."""

    peer = "a test"
    is_closed = False

    def __init__(self, directory: Path, short_way: Any) -> None:
        directory.mkdir()
        self.broker = Broker(directory, asyncio.get_running_loop())
        states = {LED_ELSEWHERE: ELSEWHERE, FOLLOWED: WITH_FOLLOWER}
        for index in range(MISSING):
            self.broker.host(partition=index, state=states.get(index), segment_bytes=4000)
        for partition, count in ((PLAIN, BATCHES), (FEW, 2), (FOLLOWED, 4), (OPEN_TRANSACTION, 3)):
            for number in range(count):
                self.append(partition, number)
        self.append(OPEN_TRANSACTION, 1, producer_id=7, is_transactional=True)
        self.at_close: dict[Any, Any] = {}
        self.answers: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(short_ways, "SHORT_WAYS", {ApiKey.FETCH: short_way} if short_way else {})
            self.dispatcher = Dispatcher(self.broker.services, "PLAINTEXT")
        self._exchanges = ExchangeQueue(self.answers.append)
        self.session_id, self.session_epoch = 0, 0

    def log(self, partition: int) -> Any:
        return self.broker.services.replicas.get("orders", partition).log

    def append(
        self, partition: int, number: int, *, producer_id: int = -1, is_transactional: bool = False
    ) -> None:
        of_producer = producer_id >= 0
        batch = a_batch(
            1 + number % 3,
            value=bytes(50 + 40 * (number % 7)),
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0 if of_producer else -1,
            base_sequence=0 if of_producer else -1,
            is_transactional=is_transactional,
        )
        self.broker.services.replicas.get("orders", partition).append(memoryview(bytearray(batch)), 1, NOW_MS)

    async def do(self, step: Step) -> None:
        if step.what == "append":
            self.append(step.partition, step.number)
        elif step.what == "delete":
            log = self.log(step.partition)
            log.delete_records(min(step.number, log.high_watermark))
        else:
            await self._ask(step)

    async def _ask(self, step: Step) -> None:
        assert step.request is not None
        sent = self._as_sent(step, step.request)
        before = len(self.answers)
        parts = encode_request(ApiKey.FETCH, step.version, 3, "test", sent)
        frame = memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))
        self.dispatcher.handle(cast(Connection, self), frame, self._exchanges.begin())
        while len(self.answers) == before:
            await asyncio.sleep(0.0005)
        answer = b"".join(part if isinstance(part, bytes) else part.read() for part in self.answers[-1])
        _, response = decode_response(ApiKey.FETCH, step.version, answer[4:])
        self._follow(sent, response)
        # The number of a session is drawn; that it is one must be the same.
        at = 15 if step.version >= FLEXIBLE_FROM else 14
        self.answers[-1] = answer[:at] + bytes((response.session_id > 0,)) + answer[at + 4 :]

    def _as_sent(self, step: Step, request: FetchRequest) -> FetchRequest:
        """With names or ids, as the version has them, and the session as far as it goes."""
        sent = FetchRequest(
            max_wait_ms=request.max_wait_ms,
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            isolation_level=request.isolation_level,
        )
        if step.what != "alone":
            sent.session_id = self.session_id
            sent.session_epoch = 0 if step.what == "begin" else self.session_epoch
        for gone in request.forgotten_topics_data:
            forgotten = FetchRequest.ForgottenTopicsData(partitions=gone.partitions)
            if step.version >= TOPIC_IDS_FROM:
                forgotten.topic_id = TOPIC_ID if gone.topic == "orders" else UNKNOWN_ID
            else:
                forgotten.topic = gone.topic
            sent.forgotten_topics_data.append(forgotten)
        for topic in request.topics:
            told = FetchRequest.Topics(
                partitions=[
                    one if step.version >= FLEXIBLE_FROM else without_epoch(one) for one in topic.partitions
                ]
            )
            if step.version >= TOPIC_IDS_FROM:
                told.topic_id = TOPIC_ID if topic.topic == "orders" else UNKNOWN_ID
            else:
                told.topic = topic.topic
            sent.topics.append(told)
        return sent

    def _follow(self, sent: FetchRequest, response: Any) -> None:
        if response.error_code:
            self.session_id = self.session_epoch = 0
        elif sent.session_epoch == 0:
            self.session_id, self.session_epoch = response.session_id, 1
        elif sent.session_epoch > 0:
            self.session_epoch += 1

    def state(self) -> list[Any]:
        """What requests leave behind."""
        counters = self.dispatcher.counters[ApiKey.FETCH]
        traffic = self.broker.services.replicas.traffic["orders"]
        told: list[Any] = [counters.requests, counters.response_bytes, traffic.bytes_out]
        session = self.broker.services.fetch_sessions.get(self.session_id)
        if session is not None:
            told.append(session.epoch)
            told += [
                (key, one.asked.fetch_offset, one.is_told, one.high_watermark, one.log_start_offset)
                for key, one in session.wanted.items()
            ]
        return told


def asked(partition: int, offset: int, max_bytes: int, epoch: int, last_epoch: int) -> Any:
    return FetchRequest.Topics.Partitions(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )


def without_epoch(one: Any) -> Any:
    """As older versions tell it."""
    return asked(one.partition, one.fetch_offset, one.partition_max_bytes, one.current_leader_epoch, -1)


def a_fetch(
    *offsets: int, min_bytes: int = 1, max_bytes: int = 500, isolation_level: int = 1
) -> FetchRequest:
    partitions = [asked(index, offset, max_bytes, 0, -1) for index, offset in enumerate(offsets)]
    return FetchRequest(
        max_wait_ms=1,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        topics=[FetchRequest.Topics(topic="orders", partitions=partitions)],
    )


def a_session(version: int, opening: Any, following: list[Any]) -> list[Step]:
    """Steps in which a client goes on with one session; requests that follow are for its partitions."""
    steps = [Step("begin", version, opening)]
    return steps + [one if isinstance(one, Step) else Step("go on", version, one) for one in following]


ordinary_wishes = st.builds(
    asked,
    st.just(PLAIN),
    st.integers(0, 2 * BATCHES - 2),
    st.sampled_from([100, 500, 2000, 1 << 20]),
    st.sampled_from([-1, 0]),
    st.sampled_from([-1, 0]),
) | st.builds(
    asked, st.just(FEW), st.integers(0, 3), st.sampled_from([500, 1 << 20]), st.just(0), st.just(-1)
)
odd_wishes = st.builds(
    asked,
    st.sampled_from([PLAIN, FEW, LED_ELSEWHERE, FOLLOWED, OPEN_TRANSACTION, MISSING]),
    st.integers(-1, 2 * BATCHES + 5),
    st.sampled_from([0, 100, 2000]),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from([-1, 0, 1]),
)
ordinary_topics = st.builds(
    FetchRequest.Topics,
    topic=st.just("orders"),
    partitions=st.lists(ordinary_wishes, min_size=1, max_size=2, unique_by=lambda one: one.partition),
)
odd_topics = st.builds(
    FetchRequest.Topics,
    topic=st.sampled_from(["orders", "nowhere"]),
    partitions=st.lists(ordinary_wishes | odd_wishes, max_size=3),
)
forgotten_topics = st.builds(
    FetchRequest.ForgottenTopicsData,
    topic=st.sampled_from(["orders", "orders", "nowhere"]),
    partitions=st.lists(st.sampled_from([PLAIN, FEW, FOLLOWED]), max_size=2),
)
ordinary_requests = st.builds(
    FetchRequest,
    max_wait_ms=st.sampled_from([0, 1]),
    min_bytes=st.sampled_from([0, 1]),
    max_bytes=st.sampled_from([700, 1 << 20]),
    isolation_level=st.sampled_from([0, 1]),
    topics=st.lists(ordinary_topics, min_size=1, max_size=1),
    forgotten_topics_data=st.just([]) | st.lists(forgotten_topics, max_size=1),
)
odd_requests = st.builds(
    FetchRequest,
    max_wait_ms=st.sampled_from([0, 1]),
    min_bytes=st.sampled_from([0, 1, 400, 1 << 20]),
    max_bytes=st.sampled_from([0, 700, 1 << 20]),
    isolation_level=st.sampled_from([0, 1]),
    topics=st.lists(ordinary_topics | odd_topics, max_size=2),
)
versions = st.integers(11, 18)
fetches = st.builds(Step, st.just("alone"), versions, ordinary_requests) | st.builds(
    Step, st.sampled_from(["alone", "begin", "go on"]), versions, odd_requests
)
happenings = st.builds(
    lambda what, partition, number: Step(what, partition=partition, number=number),
    st.sampled_from(["append", "append", "delete"]),
    st.sampled_from([PLAIN, FEW]),
    st.integers(0, 20),
)
both_partitions = st.builds(a_fetch, st.integers(0, 2 * BATCHES - 2), st.integers(0, 3))
sessions = st.builds(
    a_session,
    versions,
    both_partitions,
    st.lists(ordinary_requests | ordinary_requests | odd_requests | happenings, min_size=1, max_size=6),
)
steps_of_a_client = st.lists(fetches | happenings, min_size=1, max_size=8) | sessions


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=steps_of_a_client)
def test_both_ways_give_the_same_answers(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    directory = tmp_path_factory.mktemp("brokers")

    async def compare() -> None:
        short = Client(directory / "short", short_fetch.answer_shortly)
        long = Client(directory / "long", None)
        try:
            for step in steps:
                for client in (short, long):
                    await client.do(step)
                assert short.answers == long.answers
                assert short.state() == long.state()
        finally:
            for client in (short, long):
                client.broker.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(compare())


def with_client(tmp_path: Path, scenario: Callable[[Client, list[bool]], Any]) -> None:
    """Run a scenario; its second argument tells of each request whether the short way answered it."""
    was_short: list[bool] = []

    def noticing(services: Any, frame: memoryview) -> Any:
        parts = short_fetch.answer_shortly(services, frame)
        was_short.append(parts is not None)
        return parts

    async def run() -> None:
        client = Client(tmp_path / "data", noticing)
        try:
            await scenario(client, was_short)
        finally:
            client.broker.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("version", range(11, 19))
@pytest.mark.parametrize("kind", ["alone", "go on"])
def test_a_consumer_that_finds_records_takes_the_short_way(tmp_path: Path, version: int, kind: str) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        if kind == "go on":
            await client.do(Step("begin", version, a_fetch(0, 0)))
            was_short.clear()
        for offset in range(0, 20, 2):
            await client.do(Step(kind, version, a_fetch(offset, 3)))
        assert was_short == [True] * 10

    with_client(tmp_path, scenario)


def test_what_must_wait_or_be_refused_takes_the_long_way(tmp_path: Path) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        end = client.log(PLAIN).log_end_offset
        await client.do(Step("alone", 16, a_fetch(end)))
        await client.do(Step("alone", 16, a_fetch(0, min_bytes=1 << 20)))
        await client.do(Step("alone", 16, a_fetch(end + 1)))
        await client.do(Step("alone", 16, a_fetch(0, 0, 0)))
        await client.do(Step("go on", 16, a_fetch(0)))
        await client.do(Step("begin", 16, a_fetch(0)))
        await client.do(Step("go on", 16, a_fetch(0, 0, 0)))
        assert not any(was_short)

    with_client(tmp_path, scenario)


@pytest.mark.parametrize(
    "unusual",
    [asked(PLAIN, 0, 500, 1, -1), asked(PLAIN, 0, 500, 0, 1), asked(OPEN_TRANSACTION, 0, 500, 0, -1)],
    ids=["another leader epoch", "another epoch fetched last", "an open transaction"],
)
def test_what_one_partition_makes_unusual_takes_the_long_way(tmp_path: Path, unusual: Any) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        request = a_fetch(0)
        request.topics[0].partitions = [unusual]
        await client.do(Step("alone", 16, request))
        assert was_short == [False]

    with_client(tmp_path, scenario)


def test_a_session_may_take_up_partitions_and_forget_them_on_the_short_way(tmp_path: Path) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        await client.do(Step("begin", 18, a_fetch(0)))
        was_short.clear()
        await client.do(Step("go on", 18, a_fetch(2, 0)))
        gone = FetchRequest.ForgottenTopicsData(topic="orders", partitions=[FEW])
        forgetting = a_fetch(4)
        forgetting.forgotten_topics_data = [gone]
        await client.do(Step("go on", 18, forgetting))
        assert was_short == [True, True]
        session = client.broker.services.fetch_sessions.get(client.session_id)
        assert session is not None
        assert list(session.wanted) == [(TOPIC_ID, PLAIN)]

    with_client(tmp_path, scenario)


def test_records_that_must_come_from_a_disk_take_the_long_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        monkeypatch.setattr("odradek.log.files.is_cached", lambda *_: False)
        await client.do(Step("alone", 16, a_fetch(0)))
        await client.do(Step("alone", 16, a_fetch(0)))
        assert was_short == [False, True]  # a thread has brought them

    with_client(tmp_path, scenario)


def test_fetch_has_a_short_way() -> None:
    assert ApiKey.FETCH in short_ways.SHORT_WAYS
