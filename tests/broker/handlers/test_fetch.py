"""Fetch requests as frames, straight into the dispatcher: sessions, waiting, errors, what is read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import uvloop

from broker.conftest import BROKER_ID, TOPIC_ID, Broker
from log.given_logs import a_batch
from odradek.broker.requests.dispatch import Dispatcher
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.net.connection import Connection
from odradek.net.exchange import ExchangeQueue
from odradek.net.send_queue import FilePart
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import FetchRequest
from odradek.records.batch import read_header
from odradek.replication.partition import LeaderAndIsrState

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
TOPIC_IDS_FROM = 13
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

    def __init__(self, directory: Path) -> None:
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
        requested, self.at_close = self.at_close, {}
        self.is_closed = True
        for act in requested.values():
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
            self.ask(step, step.request)
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
            self.broker.services.waiting_fetches._expire(waiter)
        self._take_answers()

    def ask(self, step: Step, request: FetchRequest) -> None:
        """Send a request."""
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
            replica_state=request.replica_state,
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
            reported = FetchRequest.Topics(
                partitions=[
                    one if step.version >= FLEXIBLE_FROM else without_epoch(one) for one in topic.partitions
                ]
            )
            if step.version >= TOPIC_IDS_FROM:
                reported.topic_id = TOPIC_ID if topic.topic == "orders" else UNKNOWN_ID
            else:
                reported.topic = topic.topic
            sent.topics.append(reported)
        return sent

    def _follow(self, sent: FetchRequest, response: Any) -> None:
        if response.error_code:
            self.session_id = self.session_epoch = 0
        elif sent.session_epoch == 0:
            self.session_id, self.session_epoch = response.session_id, 1
        elif sent.session_epoch > 0:
            self.session_epoch += 1


def asked(partition: int, offset: int, max_bytes: int, epoch: int, last_epoch: int) -> Any:
    return FetchRequest.Topics.Partitions(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=max_bytes,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )


def without_epoch(one: Any) -> Any:
    """As versions without the last fetched epoch ask."""
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


def a_fetch_of_replica(replica_id: int, offset: int) -> FetchRequest:
    request = a_fetch(0)
    request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id)
    request.topics[0].partitions = [asked(FOLLOWED, offset, 1 << 20, 0, -1)]
    return request


def split_batches(records: bytes) -> list[bytes]:
    batches, at = [], 0
    while at < len(records):
        size = 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        batches.append(records[at : at + size])
        at += size
    return batches


def with_client(tmp_path: Path, scenario: Callable[[Client], Any]) -> None:
    """Run a scenario with a broker and its client."""

    async def run() -> None:
        client = Client(tmp_path / "data")
        try:
            await scenario(client)
        finally:
            client.broker.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def rows_of(client: Client, version: int, number: int = -1) -> list[Any]:
    """The rows of one of the answers."""
    response = decode_response(ApiKey.FETCH, version, client.answers[number][4:])[1]
    return [row for topic in response.responses for row in topic.partitions]


@pytest.mark.parametrize("version", range(11, 19))
@pytest.mark.parametrize("kind", ["alone", "go on"])
def test_a_fetch_returns_the_batches_from_its_offset_on(tmp_path: Path, version: int, kind: str) -> None:
    async def scenario(client: Client) -> None:
        if kind == "go on":
            await client.do(Step("begin", version, a_fetch(0, 0)))
        for offset in range(0, 20, 2):
            await client.do(Step(kind, version, a_fetch(offset, 3)))
            (row,) = [row for row in rows_of(client, version) if row.records]
            header = read_header(bytes(row.records))
            assert row.partition_index == PLAIN
            assert header.base_offset <= offset <= header.base_offset + header.last_offset_delta

    with_client(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "of_a_follower"), [(10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (11, ErrorCode.NONE)]
)
def test_errors_are_reported_for_each_partition(
    tmp_path: Path, version: int, of_a_follower: ErrorCode
) -> None:
    """From version 11 on, consumers may read from followers."""

    async def scenario(client: Client) -> None:
        end = client.log(PLAIN).log_end_offset
        await client.do(Step("alone", version, a_fetch(end + 1)))
        await client.do(Step("alone", version, a_fetch(0, 0, 0)))
        codes = [[row.error_code for row in rows_of(client, version, number)] for number in (0, 1)]
        assert codes == [
            [ErrorCode.OFFSET_OUT_OF_RANGE],
            [ErrorCode.NONE, ErrorCode.NONE, of_a_follower],
        ]

    with_client(tmp_path, scenario)


@pytest.mark.parametrize(
    ("asked_for", "error"),
    [
        (asked(PLAIN, 0, 500, 1, -1), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (asked(PLAIN, 0, 500, 0, 1), ErrorCode.OFFSET_OUT_OF_RANGE),
        (asked(MISSING, 0, 500, 0, -1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
    ids=["another leader epoch", "another epoch fetched last", "no such partition"],
)
def test_a_partition_that_cannot_be_read(tmp_path: Path, asked_for: Any, error: ErrorCode) -> None:
    async def scenario(client: Client) -> None:
        request = a_fetch(0)
        request.topics[0].partitions = [asked_for]
        await client.do(Step("alone", 16, request))
        assert [row.error_code for row in rows_of(client, 16)] == [error]

    with_client(tmp_path, scenario)


@pytest.mark.parametrize(("isolation_level", "sees_all"), [(0, True), (1, False)])
def test_read_committed_stops_before_an_open_transaction(
    tmp_path: Path, isolation_level: int, sees_all: bool
) -> None:
    async def scenario(client: Client) -> None:
        log = client.log(OPEN_TRANSACTION)
        request = a_fetch(0, isolation_level=isolation_level)
        request.topics[0].partitions = [asked(OPEN_TRANSACTION, 0, 1 << 20, 0, -1)]
        await client.do(Step("alone", 16, request))
        (row,) = rows_of(client, 16)
        headers = [read_header(batch) for batch in split_batches(bytes(row.records))]
        ends = headers[-1].base_offset + headers[-1].last_offset_delta + 1
        assert log.last_stable_offset < log.high_watermark
        assert ends == (log.high_watermark if sees_all else log.last_stable_offset)
        assert row.last_stable_offset == log.last_stable_offset

    with_client(tmp_path, scenario)


def test_a_follower_reads_to_the_log_end_and_commits_by_its_next_fetch(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        log = client.log(FOLLOWED)
        assert log.high_watermark == 0
        await client.do(Step("alone", 16, a_fetch_of_replica(BROKER_ID + 1, 0)))
        (row,) = rows_of(client, 16)
        assert (row.high_watermark, row.error_code) == (0, 0)
        last = read_header(split_batches(bytes(row.records))[-1])
        assert last.base_offset + last.last_offset_delta + 1 == log.log_end_offset
        await client.do(Step("alone", 16, a_fetch_of_replica(BROKER_ID + 1, log.log_end_offset)))
        assert log.high_watermark == log.log_end_offset

    with_client(tmp_path, scenario)


def test_a_broker_that_has_no_replica_may_not_fetch_as_one(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await client.do(Step("alone", 16, a_fetch_of_replica(BROKER_ID + 7, 0)))
        (row,) = rows_of(client, 16)
        assert row.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert client.log(FOLLOWED).high_watermark == 0

    with_client(tmp_path, scenario)


def test_a_session_may_take_up_partitions_and_forget_them(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await client.do(Step("begin", 18, a_fetch(0)))
        await client.do(Step("go on", 18, a_fetch(2, 0)))
        gone = FetchRequest.ForgottenTopicsData(topic="orders", partitions=[FEW])
        forgetting = a_fetch(4)
        forgetting.forgotten_topics_data = [gone]
        await client.do(Step("go on", 18, forgetting))
        session = client.broker.services.fetch_sessions.get(client.session_id)
        assert session is not None
        assert list(session.wanted) == [(TOPIC_ID, PLAIN)]

    with_client(tmp_path, scenario)


def test_records_that_must_come_from_a_disk_are_read_by_a_thread_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(client: Client) -> None:
        monkeypatch.setattr("odradek.log.files.file_system.is_cached", lambda *_: False)
        client.ask(Step("alone", 16), a_fetch(0))
        assert not client.answers
        while not client.answers:
            await asyncio.sleep(0.0005)
        client.ask(Step("alone", 16), a_fetch(0))
        assert len(client.answers) == 2

    with_client(tmp_path, scenario)


@pytest.mark.parametrize("kind", ["alone", "go on"])
@pytest.mark.parametrize("version", [11, 12, 18])
def test_a_consumer_that_waits_is_answered_by_the_append_it_waits_for(
    tmp_path: Path, kind: str, version: int
) -> None:
    async def scenario(client: Client) -> None:
        await client.do(Step("begin", version, a_fetch(PLAIN_END, FEW_END)))
        await client.do(Step(PARKED + kind, version, a_fetch(PLAIN_END, FEW_END)))
        assert (len(client.waiting), len(client.answers)) == (1, 1)
        await client.do(Step("append", partition=FEW))
        assert (len(client.waiting), len(client.answers), client.at_close) == (0, 2, {})
        answer = decode_response(ApiKey.FETCH, version, client.answers[1][4:])[1]
        rows = [row for topic in answer.responses for row in topic.partitions if row.records]
        assert [(row.partition_index, row.high_watermark) for row in rows] == [(FEW, FEW_END + 1)]

    with_client(tmp_path, scenario)


def test_a_consumer_waits_on_until_there_is_as_much_as_it_wants(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
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
def test_waiters_get_an_error_when_a_partition_goes(tmp_path: Path, happening: str, error: ErrorCode) -> None:
    async def scenario(client: Client) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END)))
        await client.do(Step(happening, partition=PLAIN))
        answer = decode_response(ApiKey.FETCH, 16, client.answers[0][4:])[1]
        assert [row.error_code for row in answer.responses[0].partitions] == [error]

    with_client(tmp_path, scenario)


def test_who_goes_away_waits_no_more(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        await client.do(Step(PARKED + "alone", 16, a_fetch(PLAIN_END)))
        await client.do(Step("close"))
        assert not client.waiting
        await client.do(Step("append", partition=PLAIN))
        assert not client.answers

    with_client(tmp_path, scenario)


def test_one_append_answers_all_who_wait_for_it(tmp_path: Path) -> None:
    async def scenario(client: Client) -> None:
        for _ in range(3):
            client.ask(Step(PARKED + "alone", 16), a_fetch(PLAIN_END))
        assert len(client.waiting) == 3
        await client.do(Step("append", partition=PLAIN))
        assert len(client.answers) == 3
        assert len(set(client.answers)) == 1

    with_client(tmp_path, scenario)
