"""One fetcher against a leader whose responses are scripted, over real logs, in virtual time."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cluster.virtual_time import run_in_virtual_time
from log.given_logs import NOW_MS, a_batch, fill, open_log, read_all
from odradek.common.clock import SystemClock
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.errors import StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.metrics.counters import TopicTraffic
from odradek.net.broker_connection import RequestFailed
from odradek.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from odradek.protocol.structs import Message
from odradek.replication.counters import ReplicationCounters
from odradek.replication.follower.fetcher import ReplicaFetcher
from odradek.replication.follower.fetcher_context import FetcherContext, FetcherSettings, FollowedPartition
from odradek.replication.partition import LeaderAndIsrState, Partition

OURS, LEADER = 2, 1
TOPIC_ID = bytes(range(16))
SESSION = 7
BACKOFF_MS = 1000

Row = FetchResponse.Responses.Partitions
Response = Message | Exception | Callable[[Message], Message]


class ScriptedLeader:
    """Stands for the connection: gives the next response of the script; without one, a fetch stays parked."""

    def __init__(self) -> None:
        self.script: list[Response] = []
        self.requests: list[Message] = []
        self.times: list[float] = []
        self._parked: asyncio.Future[Message] | None = None

    async def send(self, request: Message, *, timeout_s: float, version: int | None = None) -> Message:
        self.requests.append(request)
        self.times.append(asyncio.get_running_loop().time())
        if not self.script:
            self._parked = asyncio.get_running_loop().create_future()
            try:
                return await self._parked
            finally:
                self._parked = None
        step = self.script.pop(0)
        await asyncio.sleep(0)
        if isinstance(step, Exception):
            raise step
        return step(request) if callable(step) else step

    def disconnect(self, reason: str) -> None:
        if self._parked is not None and not self._parked.done():
            self._parked.set_exception(RequestFailed("leader", reason))

    @property
    def is_parked(self) -> bool:
        return self._parked is not None and not self.script

    def respond(self, response: Message) -> None:
        assert self._parked is not None
        self._parked.set_result(response)

    def fetches(self) -> list[FetchRequest]:
        return [one for one in self.requests if isinstance(one, FetchRequest)]


class Follower:
    """A fetcher for `LEADER` with its context."""

    def __init__(self, directory: Path, settings: FetcherSettings) -> None:
        self._directory = directory
        self.leader = ScriptedLeader()
        self.settings = settings
        self.counters = ReplicationCounters()
        self.truncated: list[PartitionLog] = []
        self.disk_errors: list[TopicPartition] = []
        self.in_threads: list[Callable[[], Any]] = []
        self.context = FetcherContext(
            broker_id=OURS,
            current_settings=lambda: self.settings,
            clock=SystemClock(),
            counters=self.counters,
            connect=lambda broker_id, index: self.leader,  # type: ignore[arg-type, return-value]
            broker_epoch=lambda: 40,
            in_pool=self._in_pool,
            on_truncated=self.truncated.append,
            on_disk_error=lambda partition, error: self.disk_errors.append(partition),
        )
        self.fetcher = ReplicaFetcher(self.context, LEADER, 0)
        self._logs: list[PartitionLog] = []

    async def _in_pool(self, step: Callable[[], Any]) -> Any:
        self.in_threads.append(step)
        return step()

    def a_partition(self, index: int = 0, *, epoch: int = 0, config: LogConfig | None = None) -> Partition:
        """A partition that this broker follows, its log empty."""
        log = open_log(self._directory / f"orders-{index}", config or LogConfig())
        self._logs.append(log)
        name = TopicPartition("orders", index)
        partition = Partition(name, TOPIC_ID, OURS, log, lambda _: None, traffic=TopicTraffic())
        partition.become(LeaderAndIsrState(LEADER, epoch, (LEADER,), (LEADER, OURS), 0))
        return partition

    def follow(self, partition: Partition) -> FollowedPartition:
        followed = FollowedPartition(partition)
        self.fetcher.add(followed)
        return followed

    async def until_parked(self) -> None:
        """Wait until the script is used up and the next fetch waits at the leader."""
        await until(lambda: self.leader.is_parked)

    async def close(self) -> None:
        self.fetcher.end()
        await self.fetcher.wait_until_ended()
        for log in self._logs:
            log.close(NOW_MS)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("never")


def response(*rows: Row, session_id: int = SESSION, error_code: int = 0) -> FetchResponse:
    topics = [FetchResponse.Responses(topic_id=TOPIC_ID, partitions=list(rows))] if rows else []
    return FetchResponse(error_code=error_code, session_id=session_id, responses=topics)


def records(*batches: bytearray, index: int = 0, high_watermark: int = 0, log_start_offset: int = 0) -> Row:
    return Row(
        partition_index=index,
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        records=memoryview(b"".join(batches)),
    )


def an_error(error_code: ErrorCode, index: int = 0) -> Row:
    return Row(partition_index=index, error_code=error_code)


def diverging(epoch: int, end_offset: int, index: int = 0) -> Row:
    end = Row.DivergingEpoch(epoch=epoch, end_offset=end_offset)
    return Row(partition_index=index, diverging_epoch=end)


def offset_response(offset: int, error_code: int = 0) -> ListOffsetsResponse:
    row = ListOffsetsResponse.Topics.Partitions(partition_index=0, error_code=error_code, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsResponse.Topics(name="orders", partitions=[row])])


def wanted(request: FetchRequest) -> dict[int, tuple[int, int, int]]:
    """Partition -> fetch offset, leader epoch, last fetched epoch."""
    return {
        row.partition: (row.fetch_offset, row.current_leader_epoch, row.last_fetched_epoch)
        for topic in request.topics
        for row in topic.partitions
    }


Scenario = Callable[[Follower], Coroutine[Any, Any, None]]
Run = Callable[[Scenario], None]


@pytest.fixture
def settings() -> FetcherSettings:
    return FetcherSettings(backoff_ms=BACKOFF_MS)


@pytest.fixture
def run(tmp_path: Path, settings: FetcherSettings) -> Run:
    def run(scenario: Scenario) -> None:
        async def main() -> None:
            follower = Follower(tmp_path, settings)
            try:
                await scenario(follower)
            finally:
                await follower.close()

        run_in_virtual_time(main())

    return run


# Ordinary fetches


def test_batches_are_appended_at_the_leaders_offsets_and_its_high_watermark_is_adopted(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition(epoch=3)
        sent = a_batch(2, leader_epoch=3) + a_batch(1, base_offset=2, leader_epoch=3)
        follower.leader.script = [response(records(sent, high_watermark=2))]
        followed = follower.follow(partition)
        await follower.until_parked()

        assert partition.log.log_end_offset == 3
        assert partition.log.high_watermark == 2
        assert partition.log.epochs.latest == 3
        assert [one.value for one in read_all(partition.log)] == [b"value"] * 3
        assert followed.lag == 0
        assert follower.counters.fetched_bytes == len(sent)

    run(scenario)


def test_a_fetch_names_only_what_has_changed_since_the_last_one(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        first, second = follower.a_partition(0), follower.a_partition(1)
        follower.leader.script = [response(records(a_batch(5, leader_epoch=0), index=1)), response()]
        follower.follow(first)
        follower.follow(second)
        await follower.until_parked()
        opening, after_records, after_nothing = follower.leader.fetches()

        assert (opening.session_id, opening.session_epoch) == (0, 0)
        assert wanted(opening) == {0: (0, 0, -1), 1: (0, 0, -1)}
        assert (opening.replica_state.replica_id, opening.replica_state.replica_epoch) == (OURS, 40)
        assert (after_records.session_id, after_records.session_epoch) == (SESSION, 1)
        assert wanted(after_records) == {1: (5, 0, 0)}
        assert after_nothing.session_epoch == 2
        assert wanted(after_nothing) == {}

    run(scenario)


def test_a_new_leader_epoch_is_written_by_a_thread_before_its_first_batch_is_appended(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition(epoch=4)
        ends: list[int] = []
        write = follower.context.in_pool

        async def noting_the_end(step: Callable[[], Any]) -> Any:
            ends.append(partition.log.log_end_offset)
            written = await write(step)
            assert partition.log.epochs.latest == 4
            return written

        follower.context.in_pool = noting_the_end
        follower.leader.script = [
            response(records(a_batch(2, leader_epoch=4))),
            response(records(a_batch(2, base_offset=2, leader_epoch=4))),
        ]
        follower.follow(partition)
        await follower.until_parked()

        assert partition.log.log_end_offset == 4
        assert ends == [0]  # none for the second batch, which begins no epoch

    run(scenario)


def test_batches_are_dropped_if_the_log_is_truncated_while_their_epochs_are_written(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition(epoch=5)
        write = follower.context.in_pool

        async def then_truncate(step: Callable[[], Any]) -> Any:
            written = await write(step)
            if partition.log.log_end_offset == 2:
                partition.log.truncate_to(1, now_ms=NOW_MS)
            return written

        partition.log.assign_leader_epoch(4)
        fill(partition.log, 2, records=1, leader_epoch=4)
        follower.context.in_pool = then_truncate
        follower.leader.script = [response(records(a_batch(1, base_offset=2, leader_epoch=5)))]
        follower.follow(partition)
        await follower.until_parked()

        assert partition.log.log_end_offset == 1
        assert caplog.text == ""

    run(scenario)


def test_what_arrives_for_a_partition_that_is_followed_no_more_is_dropped(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        kept, dropped = follower.a_partition(0), follower.a_partition(1)
        follower.follow(kept)
        followed = follower.follow(dropped)
        await follower.until_parked()

        follower.fetcher.remove(followed.key)
        batch = a_batch(1, leader_epoch=0)
        follower.leader.respond(response(records(batch), records(batch, index=1)))
        await until(lambda: len(follower.leader.requests) == 2)

        assert (kept.log.log_end_offset, dropped.log.log_end_offset) == (1, 0)
        (forgotten,) = follower.leader.fetches()[-1].forgotten_topics_data
        assert forgotten.partitions == [1]

    run(scenario)


def test_what_was_asked_for_before_a_truncation_is_not_appended(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        follower.leader.script = [response(records(a_batch(4, leader_epoch=0)))]
        follower.follow(partition)
        await follower.until_parked()

        partition.log.truncate_to(0, now_ms=NOW_MS)
        follower.leader.respond(response(records(a_batch(1, base_offset=4, leader_epoch=0))))
        await until(lambda: len(follower.leader.requests) == 3)

        assert partition.log.log_end_offset == 0
        assert wanted(follower.leader.fetches()[-1])[0][0] == 0

    run(scenario)


def test_a_partition_that_is_added_does_not_wait_until_a_parked_fetch_returns(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        follower.follow(follower.a_partition(0))
        await follower.until_parked()
        await asyncio.sleep(1)  # interruptions keep a distance from each other
        began = asyncio.get_running_loop().time()

        follower.follow(follower.a_partition(1))
        await until(lambda: len(follower.leader.requests) == 2)

        assert asyncio.get_running_loop().time() - began < 0.1  # not the 500 ms of a parked fetch
        assert set(wanted(follower.leader.fetches()[-1])) == {0, 1}
        assert follower.counters.failed_fetches == 0

    run(scenario)


# Logs that differ


def test_a_log_is_truncated_to_where_the_leaders_epoch_ended(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition(epoch=2)
        partition.log.assign_leader_epoch(1)
        fill(partition.log, 3, records=2, leader_epoch=1)
        follower.leader.script = [response(diverging(epoch=1, end_offset=4))]
        follower.follow(partition)
        await follower.until_parked()

        assert partition.log.log_end_offset == 4
        assert [wanted(one)[0] for one in follower.leader.fetches()] == [(6, 2, 1), (4, 2, 1)]
        assert follower.truncated == [partition.log]
        assert follower.counters.truncations == 1

    run(scenario)


def test_others_are_served_between_the_truncations_of_two_partitions(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        ends_seen: set[tuple[int, ...]] = set()
        partitions = [follower.a_partition(index, epoch=2) for index in range(3)]

        def look() -> None:
            ends_seen.add(tuple(one.log.log_end_offset for one in partitions))
            if (0, 0, 0) not in ends_seen:
                asyncio.get_running_loop().call_soon(look)

        for partition in partitions:
            partition.log.assign_leader_epoch(1)
            fill(partition.log, 1, records=2, leader_epoch=1)
        follower.leader.script = [
            response(*(diverging(epoch=1, end_offset=0, index=one) for one in range(3)))
        ]
        for partition in partitions:
            follower.follow(partition)
        look()
        await follower.until_parked()

        assert ends_seen == {(2, 2, 2), (0, 2, 2), (0, 0, 2), (0, 0, 0)}

    run(scenario)


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "expected"), [(10, 20, (10, 10)), (0, 3, (0, 2)), (0, 9, (0, 6))]
)
def test_a_fetch_outside_of_the_leaders_log_follows_its_ends(
    run: Run, leader_start: int, leader_end: int, expected: tuple[int, int]
) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        partition.log.assign_leader_epoch(0)
        fill(partition.log, 3, records=2)
        follower.leader.script = [
            response(an_error(ErrorCode.OFFSET_OUT_OF_RANGE)),
            offset_response(leader_start),
            offset_response(leader_end),
        ]
        follower.follow(partition)
        await follower.until_parked()

        assert (partition.log.log_start_offset, partition.log.log_end_offset) == expected
        earliest, latest = (one for one in follower.leader.requests if isinstance(one, ListOffsetsRequest))
        assert [one.topics[0].partitions[0].timestamp for one in (earliest, latest)] == [-2, -1]

    run(scenario)


def test_the_leaders_offsets_are_asked_for_again_after_an_error(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        out_of_range = response(an_error(ErrorCode.OFFSET_OUT_OF_RANGE))
        follower.leader.script = [
            out_of_range,
            offset_response(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
            response(),
            out_of_range,
            offset_response(8),
            offset_response(9),
        ]
        follower.follow(partition)
        await until(lambda: partition.log.log_end_offset == 8)

    run(scenario)


def test_a_leader_that_refuses_an_offset_inside_its_log_is_asked_less_and_less_often(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Our newest leader epoch is newer than all of the leader's: it cannot say where the logs part."""

    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition(epoch=7)
        partition.log.assign_leader_epoch(6)
        fill(partition.log, 1, records=2, leader_epoch=6)
        refusal = [
            response(an_error(ErrorCode.OFFSET_OUT_OF_RANGE)),
            offset_response(0),
            offset_response(9),
        ]
        follower.leader.script = [*refusal * 7, response(records(a_batch(1, base_offset=2, leader_epoch=7)))]
        followed = follower.follow(partition)
        await until(lambda: partition.log.log_end_offset == 3)

        fetched_at = [
            at
            for at, request in zip(follower.leader.times, follower.leader.requests, strict=True)
            if isinstance(request, FetchRequest)
        ]
        waits = [round(after - before, 2) for before, after in pairwise(fetched_at[:8])]
        assert waits == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
        assert followed.failures == 0
        (warning,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
        for fact in ("orders-0", "broker 1", "offset 2", "epoch 6", "0 to 9"):
            assert fact in warning

    run(scenario)


# Errors


def test_a_corrupt_batch_is_never_appended_and_fetched_again_after_the_backoff(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(follower: Follower) -> None:
        partition, other = follower.a_partition(0), follower.a_partition(1)
        intact = a_batch(1, leader_epoch=0)
        damaged = bytearray(intact)
        damaged[-3] ^= 1
        follower.leader.script = [response(records(damaged), records(intact, index=1))]
        follower.follow(partition)
        follower.follow(other)
        await follower.until_parked()

        assert (partition.log.log_end_offset, other.log.log_end_offset) == (0, 1)
        assert follower.counters.corrupt_batches == 1
        assert "is not appended" in caplog.text
        assert follower.leader.fetches()[1].forgotten_topics_data[0].partitions == [0]

    async def retried(follower: Follower) -> None:
        partition = follower.a_partition(0)
        damaged = a_batch(1, leader_epoch=0)
        damaged[-3] ^= 1
        follower.leader.script = [
            response(records(damaged)),
            response(records(a_batch(1, leader_epoch=0))),
        ]
        follower.follow(partition)
        await until(lambda: partition.log.log_end_offset == 1)
        first, second = follower.leader.times[:2]
        assert second - first >= BACKOFF_MS / 1000

    run(scenario)
    run(retried)


def test_a_partition_with_an_error_waits_longer_with_each_failure(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        failed = response(an_error(ErrorCode.UNKNOWN_LEADER_EPOCH))
        follower.leader.script = [failed, failed, failed]
        follower.follow(partition)
        await follower.until_parked()

        times = follower.leader.times
        waits = [round(later - earlier, 2) for earlier, later in pairwise(times)]
        assert waits == pytest.approx([0.05, 0.1, 0.2], abs=0.02)

    run(scenario)


def test_a_partition_of_a_fenced_epoch_is_fetched_no_more(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        fenced, other = follower.a_partition(0), follower.a_partition(1)
        follower.leader.script = [response(an_error(ErrorCode.FENCED_LEADER_EPOCH)), response()]
        follower.follow(fenced)
        follower.follow(other)
        await follower.until_parked()

        assert len(follower.fetcher) == 1
        assert follower.leader.fetches()[1].forgotten_topics_data[0].partitions == [0]

    run(scenario)


def test_a_lost_session_is_opened_again_at_once_with_all_partitions(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        follower.leader.script = [
            response(),
            response(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=0),
            response(session_id=8),
        ]
        follower.follow(follower.a_partition(0))
        follower.follow(follower.a_partition(1))
        await follower.until_parked()

        sessions = [(one.session_id, one.session_epoch) for one in follower.leader.fetches()]
        assert sessions == [(0, 0), (SESSION, 1), (0, 0), (8, 1)]
        assert set(wanted(follower.leader.fetches()[2])) == {0, 1}
        assert follower.leader.times[-1] < 0.05

    run(scenario)


def test_an_unreachable_leader_is_tried_again_and_logged_once(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(follower: Follower) -> None:
        caplog.set_level(logging.INFO)
        partition = follower.a_partition()
        lost = RequestFailed("leader", "connection refused")
        sent = response(records(a_batch(1, leader_epoch=0)))
        follower.leader.script = [response(), lost, lost, lost, sent]
        follower.follow(partition)
        await follower.until_parked()

        assert partition.log.log_end_offset == 1
        assert follower.counters.failed_fetches == 3
        assert caplog.text.count("Cannot fetch from broker 1") == 1
        assert caplog.text.count("Fetching from broker 1 again") == 1
        # The state of the session is unknown: it is replaced, with every partition.
        for one in follower.leader.fetches()[2:5]:
            assert (one.session_id, one.session_epoch) == (SESSION, 0)
            assert wanted(one) == {0: (0, 0, -1)}

    run(scenario)


def test_an_unexpected_exception_costs_one_backoff(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        follower.leader.script = [KeyError("a fault"), response(records(a_batch(1, leader_epoch=0)))]
        follower.follow(partition)
        await until(lambda: partition.log.log_end_offset == 1)
        assert "A fetch from broker 1 failed" in caplog.text

    run(scenario)


# Disks


@pytest.mark.parametrize(("number", "is_kept"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_full_disk_is_retried_and_a_failed_one_given_up(
    run: Run, monkeypatch: pytest.MonkeyPatch, number: int, is_kept: bool
) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        append = PartitionLog.append_follower_batches
        failures = iter([StorageError(OSError(number, "the disk"), "orders-0")])

        def failing_once(log: PartitionLog, found: Any, now_ms: int) -> Any:
            for failure in failures:
                raise failure
            return append(log, found, now_ms)

        monkeypatch.setattr(PartitionLog, "append_follower_batches", failing_once)
        sent = response(records(a_batch(1, leader_epoch=0)))
        follower.leader.script = [sent, sent]
        follower.follow(partition)
        await until(lambda: bool(follower.disk_errors))
        assert len(follower.fetcher) == int(is_kept)
        if is_kept:
            await until(lambda: partition.log.log_end_offset == 1)
            assert follower.leader.times[1] >= BACKOFF_MS / 1000

        assert follower.disk_errors == [TopicPartition("orders", 0)]

    run(scenario)


# The throttle


@pytest.mark.parametrize("settings", [FetcherSettings(throttled_rate=100, backoff_ms=BACKOFF_MS)])
def test_a_throttled_partition_waits_and_others_do_not(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        throttled = follower.a_partition(
            0, config=LogConfig(follower_replication_throttled_replicas=(f"0:{OURS}",))
        )
        other = follower.a_partition(1)
        behind = {"high_watermark": 1000}
        batch = a_batch(1, leader_epoch=0, value=b"x" * 300)
        following = a_batch(1, base_offset=1, leader_epoch=0)
        follower.leader.script = [
            response(records(batch, **behind), records(batch, index=1, **behind)),
            response(records(following, index=1, **behind)),
        ]
        follower.follow(throttled)
        follower.follow(other)
        await follower.until_parked()

        assert (throttled.log.log_end_offset, other.log.log_end_offset) == (1, 2)
        assert follower.leader.times[-1] < 0.1
        assert follower.leader.fetches()[1].forgotten_topics_data[0].partitions == [0]

    run(scenario)


def test_ending_waits_for_what_is_being_appended(run: Run) -> None:
    async def scenario(follower: Follower) -> None:
        partition = follower.a_partition()
        written: asyncio.Event = asyncio.Event()

        async def slowly(step: Callable[[], Any]) -> Any:
            result = step()
            written.set()
            await asyncio.sleep(0.01)
            return result

        follower.context.in_pool = slowly
        follower.leader.script = [response(records(a_batch(1, leader_epoch=0)))]
        follower.follow(partition)
        await written.wait()
        follower.fetcher.end()
        await follower.fetcher.wait_until_ended()

        end = partition.log.log_end_offset
        await asyncio.sleep(1)
        assert partition.log.log_end_offset == end == 0

    run(scenario)
