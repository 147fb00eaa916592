"""The short way of a fetch request ends where the handler does, for any requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.conftest import BROKER_ID, TOPIC_ID, Broker
from log.given_logs import a_batch
from odradek.broker.handlers import short_fetch
from odradek.broker.requests import short_ways
from odradek.broker.requests.dispatch import Dispatcher
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.partition.log_appender import LogAppender
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.net.send_queue import FilePart
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import TOPIC_IDS_FROM
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import FetchRequest
from odradek.replication.partition import LeaderAndIsrState

assert short_fetch
NOW_MS = 1_700_000_000_000
UNKNOWN_ID = bytes(range(16))
ELSEWHERE = LeaderAndIsrState(BROKER_ID + 1, 0, (BROKER_ID + 1,), (BROKER_ID + 1,), 0)
LED_LATER_ELSEWHERE = LeaderAndIsrState(BROKER_ID + 1, 1, (BROKER_ID + 1,), (BROKER_ID + 1,), 1)
WITH_FOLLOWER = LeaderAndIsrState(BROKER_ID, 0, (BROKER_ID, BROKER_ID + 1), (BROKER_ID, BROKER_ID + 1), 0)
PLAIN, FEW, LED_ELSEWHERE, FOLLOWED, OPEN_TRANSACTION, MISSING = range(6)
BATCHES = 30
BIG = 100  # from this number on a batch is too large to be copied into an answer
PLAIN_END, FEW_END = 60, 3
FLEXIBLE_FROM = 12
HOURS_MS = 2**31 - 1
PARKED = "park "


class Step(NamedTuple):
    """A request, or what happens to a partition before the next one.

    A request that is parked waits for hours; the next request lets its time be over.
    """

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
            self.broker.host(partition=index, state=states.get(index), segment_bytes=25_000)
        for partition, count in ((PLAIN, BATCHES), (FEW, 2), (FOLLOWED, 4), (OPEN_TRANSACTION, 3)):
            for number in range(count):
                self.append(partition, BIG if number == BATCHES // 2 else number)
        self.append(OPEN_TRANSACTION, 1, producer_id=7, is_transactional=True)
        self.at_close: dict[Any, Any] = {}
        self.answers: list[Any] = []
        self._taken = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(short_ways, "SHORT_WAYS", {ApiKey.FETCH: short_way} if short_way else {})
            self.dispatcher = Dispatcher(self.broker.services, "PLAINTEXT")
        self._exchanges = ExchangeQueue(self.answers.append)
        self._unanswered: list[tuple[Step, FetchRequest]] = []
        self.session_id, self.session_epoch = 0, 0

    @property
    def waiting(self) -> set[Any]:
        """What is in the purgatory."""
        watching = self.broker.services.waiting_fetches.watching
        return {waiter for waiters in watching.values() for waiter in waiters}

    def close(self, reason: str = "") -> None:
        """As a connection does; the client comes back with the next request."""
        wishes, self.at_close = self.at_close, {}
        self.is_closed = True
        for act in wishes.values():
            act()
        self._exchanges = ExchangeQueue(self.answers.append)
        self._unanswered.clear()
        self.session_id = self.session_epoch = 0

    def log(self, partition: int) -> Any:
        return self.broker.services.replicas.get("orders", partition).log

    def append(
        self, partition: int, number: int, *, producer_id: int = -1, is_transactional: bool = False
    ) -> None:
        of_producer = producer_id >= 0
        batch = a_batch(
            1 + number % 3 if number < BIG else 1,
            value=bytes(50 + 40 * (number % 7) if number < BIG else 20_000),
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0 if of_producer else -1,
            base_sequence=0 if of_producer else -1,
            is_transactional=is_transactional,
        )
        self.broker.services.replicas.get("orders", partition).append(memoryview(bytearray(batch)), 1, NOW_MS)

    async def do(self, step: Step) -> None:
        if step.request is None:
            with contextlib.suppress(KafkaError):  # the partition may be gone, or led elsewhere, by now
                self._happen(step)
            self.is_closed = False
            for _ in range(3):
                await asyncio.sleep(0)
        else:
            self.let_time_be_over()
            self._ask(step, step.request)
            while len(self.answers) < self._asked and not step.what.startswith(PARKED):
                await asyncio.sleep(0.0005)
        self._take_answers()

    def _happen(self, step: Step) -> None:
        if step.what == "append":
            self.append(step.partition, step.number)
        elif step.what == "open a transaction":
            self.append(step.partition, step.number, producer_id=8, is_transactional=True)
        elif step.what == "delete":
            log = self.log(step.partition)
            log.delete_records(min(step.number, log.high_watermark))
        elif step.what == "lead elsewhere":
            self.broker.services.replicas.get("orders", step.partition).become(LED_LATER_ELSEWHERE)
        elif step.what == "drop":
            self.broker.services.replicas.drop(TopicPartition("orders", step.partition))
        elif step.what == "close":
            self.close()

    def let_time_be_over(self) -> None:
        """Whatever waits has waited long enough."""
        for waiter in self.waiting:
            waiter.timer.cancel()
            self.broker.services.waiting_fetches._expire(waiter)
        self._take_answers()

    def _ask(self, step: Step, request: FetchRequest) -> None:
        sent = self._as_sent(step, request)
        self._unanswered.append((step, sent))
        parts = encode_request(ApiKey.FETCH, step.version, 3, "test", sent)
        frame = memoryview(bytearray(b"".join(bytes(part) for part in parts)[4:]))
        self.dispatcher.handle(cast(Connection, self), frame, self._exchanges.begin())
        frame[:] = bytes(len(frame))  # the buffer is used again

    @property
    def _asked(self) -> int:
        return self._taken + len(self._unanswered)

    def _take_answers(self) -> None:
        for at in range(self._taken, len(self.answers)):
            step, sent = self._unanswered.pop(0)
            parts = self.answers[at]
            answer = b"".join(part.read() if isinstance(part, FilePart) else part for part in parts)
            _, response = decode_response(ApiKey.FETCH, step.version, answer[4:])
            self._follow(sent, response)
            # The number of a session is drawn; that it is one must be the same.
            position = 15 if step.version >= FLEXIBLE_FROM else 14
            is_session = bytes((0, 0, 0, response.session_id > 0))
            self.answers[at] = answer[:position] + is_session + answer[position + 4 :]
        self._taken = len(self.answers)

    def _as_sent(self, step: Step, request: FetchRequest) -> FetchRequest:
        """With names or ids, as the version has them, and the session as far as it goes."""
        kind = step.what.removeprefix(PARKED)
        sent = FetchRequest(
            max_wait_ms=request.max_wait_ms if kind == step.what else HOURS_MS,
            min_bytes=request.min_bytes,
            max_bytes=request.max_bytes,
            isolation_level=request.isolation_level,
        )
        if kind != "alone":
            sent.session_id = self.session_id
            sent.session_epoch = 0 if kind == "begin" else self.session_epoch
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
        told: list[Any] = [counters.requests, counters.request_bytes, counters.response_bytes]
        told += [traffic.bytes_out, len(self.waiting), len(self.at_close)]
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
    st.integers(0, 20) | st.just(BIG),
)
upheavals = st.builds(
    lambda what, partition: Step(what, partition=partition),
    st.sampled_from(["open a transaction", "lead elsewhere", "drop", "close"]),
    st.sampled_from([PLAIN, FEW]),
)
both_partitions = st.builds(a_fetch, st.integers(0, 2 * BATCHES - 2), st.integers(0, 3))
sessions = st.builds(
    a_session,
    versions,
    both_partitions,
    st.lists(ordinary_requests | ordinary_requests | odd_requests | happenings, min_size=1, max_size=6),
)
steps_of_a_client = st.lists(fetches | happenings, min_size=1, max_size=8) | sessions
# At the end of both partitions there is nothing yet, so that a fetch waits.
at_the_end = st.builds(
    lambda plain, few, min_bytes, isolation_level: a_fetch(
        PLAIN_END - plain, FEW_END - few, min_bytes=min_bytes, isolation_level=isolation_level
    ),
    st.sampled_from([0, 0, 0, 1]),
    st.sampled_from([0, 0, 0, -1]),
    st.sampled_from([1, 1, 400]),
    st.sampled_from([0, 1]),
)
parked = st.builds(
    Step, st.sampled_from([PARKED + "alone", PARKED + "go on", PARKED + "begin"]), versions, at_the_end
)
waits = st.lists(parked | happenings | happenings | upheavals | fetches, min_size=2, max_size=10)
waits_in_session = st.builds(
    lambda version, opening, following: [
        Step("begin", version, opening),
        *(step if step.request is None else step._replace(version=version) for step in following),
    ],
    versions,
    at_the_end,
    waits,
)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=steps_of_a_client)
def test_both_ways_give_the_same_answers(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
    compare_both_ways(tmp_path_factory, steps)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(steps=waits | waits_in_session)
def test_both_ways_wait_for_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    compare_both_ways(tmp_path_factory, steps)


def compare_both_ways(tmp_path_factory: pytest.TempPathFactory, steps: list[Step]) -> None:
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
            for client in (short, long):
                client.let_time_be_over()
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


def test_what_must_be_refused_takes_the_long_way(tmp_path: Path) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        end = client.log(PLAIN).log_end_offset
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
        monkeypatch.setattr("odradek.log.files.file_system.is_cached", lambda *_: False)
        await client.do(Step("alone", 16, a_fetch(0)))
        await client.do(Step("alone", 16, a_fetch(0)))
        assert was_short == [False, True]  # a thread has brought them

    with_client(tmp_path, scenario)


@pytest.mark.parametrize("kind", ["alone", "go on"])
@pytest.mark.parametrize("version", [11, 12, 18])
def test_a_consumer_that_waits_is_answered_by_the_append_it_waits_for(
    tmp_path: Path, kind: str, version: int
) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        await client.do(Step("begin", version, a_fetch(PLAIN_END, FEW_END)))
        was_short.clear()
        await client.do(Step(PARKED + kind, version, a_fetch(PLAIN_END, FEW_END)))
        assert (was_short, len(client.waiting), len(client.answers)) == ([True], 1, 1)
        await client.do(Step("append", partition=FEW))
        assert (len(client.waiting), len(client.answers), client.at_close) == (0, 2, {})
        answer = decode_response(ApiKey.FETCH, version, client.answers[1][4:])[1]
        rows = [row for topic in answer.responses for row in topic.partitions if row.records]
        assert [(row.partition_index, row.high_watermark) for row in rows] == [(FEW, FEW_END + 1)]

    with_client(tmp_path, scenario)


def test_a_consumer_waits_on_until_there_is_as_much_as_it_wants(tmp_path: Path) -> None:
    async def scenario(client: Client, _: list[bool]) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END, min_bytes=400)))
        answered = []
        for _ in range(3):
            await client.do(Step("append", partition=PLAIN, number=3))
            answered.append(len(client.answers))
        assert answered == [0, 1, 1]

    with_client(tmp_path, scenario)


@pytest.mark.parametrize(
    ("happening", "error"),
    [
        ("lead elsewhere", ErrorCode.FENCED_LEADER_EPOCH),
        ("drop", ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_who_waits_is_told_when_the_partition_goes(tmp_path: Path, happening: str, error: ErrorCode) -> None:
    async def scenario(client: Client, was_short: list[bool]) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END)))
        await client.do(Step(happening, partition=PLAIN))
        assert was_short == [True]
        answer = decode_response(ApiKey.FETCH, 16, client.answers[0][4:])[1]
        assert [row.error_code for row in answer.responses[0].partitions] == [error]

    with_client(tmp_path, scenario)


def test_who_goes_away_waits_no_more(tmp_path: Path) -> None:
    async def scenario(client: Client, _: list[bool]) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END)))
        await client.do(Step("close"))
        assert not client.waiting
        await client.do(Step("append", partition=PLAIN))
        assert not client.answers

    with_client(tmp_path, scenario)


def test_one_append_answers_all_who_wait_for_it(tmp_path: Path) -> None:
    async def scenario(client: Client, _: list[bool]) -> None:
        for _ in range(3):
            client._ask(Step(PARKED + "alone", 16), a_fetch(PLAIN_END))
        assert len(client.waiting) == 3
        await client.do(Step("append", partition=PLAIN))
        assert len(client.answers) == 3
        assert len(set(client.answers)) == 1

    with_client(tmp_path, scenario)


def test_a_bug_in_a_late_answer_costs_its_client_the_connection_and_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(client: Client, _: list[bool]) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END, FEW_END)))
        broken = client.broker.services.replicas.get("orders", PLAIN)
        sound_log, broken.log = broken.log, LogAppender(*[None] * 5, 0, PLAIN_END)  # type: ignore[arg-type]
        await client.do(Step("append", partition=FEW))
        broken.log = sound_log
        assert (len(client.waiting), client.answers) == (0, [])
        assert "a bug in a late answer" in caplog.text

    with_client(tmp_path, scenario)


def test_fetch_has_a_short_way() -> None:
    assert ApiKey.FETCH in short_ways.SHORT_WAYS
