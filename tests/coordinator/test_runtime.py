"""The runtime over a log in memory: what is answered when, and what happens when writing or leading fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Hashable
from typing import Any

import pytest

from coordinator.given import Alarms, FixedClock, MemoryLog
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.result import (
    CoordinatorRecord,
    ParkedResponse,
    ProducerStamp,
    Result,
    StartTimer,
    StopTimer,
    TransactionMarker,
)
from odradek.coordinator.runtime import RETRY_MS, CoordinatorRuntime
from odradek.protocol.errors import ProtocolError
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker


class Words:
    """A state that is a list of words, in the order of their records."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.pending: dict[int, list[str]] = {}
        self.rung: list[Hashable] = []

    def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
        word = record.key.decode()
        (self.words if producer_id is None else self.pending.setdefault(producer_id, [])).append(word)

    def replay_end_of_transaction(self, producer_id: int, *, is_commit: bool) -> None:
        words = self.pending.pop(producer_id, [])
        self.words += words if is_commit else []

    def on_loaded(self, now_ms: int) -> Result[None]:
        return Result(timers=(StartTimer("loaded", 5),))

    def on_timer(self, key: Hashable, now_ms: int) -> Result[None]:
        self.rung.append(key)
        return Result(
            records=(CoordinatorRecord(str(key).encode(), None),),
            parked_responses=(ParkedResponse("parked", key),),
        )


class Given:
    def __init__(self, log: MemoryLog | None = None) -> None:
        self.log = log or MemoryLog()
        self.alarms = Alarms()
        self.state = Words()
        self.runtime = CoordinatorRuntime(
            self.log, self.alarms, FixedClock(), lambda _: self.state, commit_timeout_ms=50
        )

    async def lead(self) -> Words:
        self.runtime.lead(3, 0)
        while True:
            with contextlib.suppress(KafkaError):
                return await self.runtime.read(3, lambda state, _: state)
            await asyncio.sleep(0)

    def add(self, word: str, **fields: Any) -> Coroutine[Any, Any, Any]:
        record = CoordinatorRecord(word.encode(), b"")
        return self.runtime.run(3, lambda state, now_ms: Result(word, (record,), **fields))


def run(scenario: Callable[[Given], Coroutine[Any, Any, None]]) -> None:
    async def with_given() -> None:
        await asyncio.wait_for(scenario(Given()), 20)

    asyncio.run(with_given())


async def error_of(asked: Coroutine[Any, Any, Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        await asked
    return raised.value.error_code


def test_no_request_is_answered_before_its_records_are_committed():
    async def scenario(given: Given) -> None:
        await given.lead()
        given.log.committed = 0
        asked = asyncio.create_task(given.add("one"))
        looked = asyncio.create_task(given.runtime.read(3, lambda state, _: list(state.words)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert given.state.words == ["one"], "the next decision must know of it"
        assert not asked.done()
        assert not looked.done()
        given.log.commit()
        assert (await asked, await looked) == ("one", ["one"])

    run(scenario)


def test_after_loading_reads_wait_until_what_was_replayed_is_committed():
    async def scenario(given: Given) -> None:
        await given.lead()
        await given.add("one")
        await given.add("two")
        given.log.committed = 1
        later = Given(given.log)
        later.runtime.lead(3, 1)
        while not later.alarms.set:
            await asyncio.sleep(0)
        looked = asyncio.create_task(later.runtime.read(3, lambda state, _: list(state.words)))
        asked = asyncio.create_task(later.runtime.run(3, lambda state, _: Result(list(state.words))))
        for _ in range(5):
            await asyncio.sleep(0)
        assert later.state.words == ["one", "two"]
        assert not looked.done()
        assert not asked.done(), "a decision without records must not show more than a read does"
        given.log.commit()
        assert (await looked, await asked) == (["one", "two"], ["one", "two"])

    run(scenario)


@pytest.mark.parametrize("is_commit", [True, False])
def test_records_of_a_transaction_take_effect_when_its_marker_is_committed(is_commit: bool):
    producer = ProducerStamp(7, 0)
    marker = TransactionMarker(producer, is_commit, coordinator_epoch=0, transaction_version=2)

    async def scenario(given: Given) -> None:
        await given.lead()
        await given.add("one", producer=producer)
        assert given.state.words == []
        given.log.committed = given.log.next_offset
        ended = asyncio.create_task(given.runtime.end_transaction(3, marker))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not ended.done()
        given.log.commit()
        await ended
        assert given.state.words == (["one"] if is_commit else [])
        # The same after a restart, from the log alone.
        assert (await Given(given.log).lead()).words == given.state.words

    run(scenario)


def test_a_marker_is_refused_where_the_partition_is_not_coordinated():
    async def scenario(given: Given) -> None:
        marker = TransactionMarker(ProducerStamp(7, 0), True, 0, 0)
        assert await error_of(given.runtime.end_transaction(3, marker)) is ErrorCode.NOT_COORDINATOR

    run(scenario)


def test_a_write_that_fails_leaves_the_state_alone():
    async def scenario(given: Given) -> None:
        await given.lead()
        for fault, reported in (
            (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        ):
            given.log.fault = KafkaError(error_code=fault)
            assert await error_of(given.add("one")) is reported
        assert given.state.words == []

    run(scenario)


def test_a_partition_is_refused_while_it_is_not_led_or_not_loaded():
    async def scenario(given: Given) -> None:
        assert await error_of(given.add("one")) is ErrorCode.NOT_COORDINATOR
        await given.lead()
        await given.add("one")
        given.runtime.resign(3)
        assert await error_of(given.add("two")) is ErrorCode.NOT_COORDINATOR
        given.runtime.lead(3, 1)
        assert await error_of(given.add("two")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(scenario)


def test_a_later_coordinator_replays_what_was_written_transactions_included():
    async def scenario(given: Given) -> None:
        await given.lead()
        await given.add("one")
        for producer_id in (1, 2, 3):
            await given.add(f"of {producer_id}", producer=ProducerStamp(producer_id, 0))
        for producer_id, ends in ((1, ControlType.COMMIT), (2, ControlType.ABORT)):
            marker = build_end_transaction_marker(
                EndTransactionMarker(ends, 0), producer_id=producer_id, producer_epoch=0, timestamp_ms=0
            )
            given.log.append(3, 0, marker, 0)
        later = await Given(given.log).lead()
        assert later.words == ["one", "of 1"]
        assert later.pending == {3: ["of 3"]}

    run(scenario)


def test_a_parked_request_is_answered_by_a_later_decision():
    async def scenario(given: Given) -> None:
        await given.lead()
        parked = asyncio.create_task(given.add("one", parked_under="key"))
        await asyncio.sleep(0)
        assert (
            await given.add(
                "two", parked_responses=(ParkedResponse("key", "answer"), ParkedResponse("nobody", 0))
            )
            == "two"
        )
        assert await parked == "answer"
        assert await given.add("three", parked_under="own", parked_responses=(ParkedResponse("own", 3),)) == 3

    run(scenario)


def test_the_answer_to_a_parked_request_waits_for_the_commit_as_well():
    async def scenario(given: Given) -> None:
        await given.lead()
        parked = asyncio.create_task(given.add("one", parked_under="key"))
        await asyncio.sleep(0)
        given.log.committed = 1
        answering = asyncio.create_task(
            given.add("two", parked_under="other", parked_responses=(ParkedResponse("key", 1),))
        )
        for _ in range(5):
            await asyncio.sleep(0)
        assert not parked.done()
        given.log.fault = KafkaError(error_code=ErrorCode.REQUEST_TIMED_OUT)
        given.log.moved.set()
        assert await error_of(parked) is ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[arg-type]
        answering.cancel()

    run(scenario)


def test_a_parked_request_is_answered_at_the_end_and_when_a_newer_one_replaces_it():
    async def scenario(given: Given) -> None:
        await given.lead()
        first, second = (asyncio.create_task(given.add("x", parked_under="key")) for _ in range(2))
        assert await error_of(first) is ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[arg-type]
        given.runtime.resign(3)
        assert await error_of(second) is ErrorCode.NOT_COORDINATOR  # type: ignore[arg-type]

    run(scenario)


def test_timers_ring_once_unless_stopped_and_are_tried_again_when_writing_fails():
    async def scenario(given: Given) -> None:
        state = await given.lead()
        given.alarms.fire()
        assert state.rung == ["loaded"]
        await given.add("one", timers=(StartTimer("a", 1), StartTimer("b", 1), StopTimer("a")))
        await given.add("two", timers=(StartTimer("b", 9, lets_earlier_run=True),))
        given.log.fault = KafkaError(error_code=ErrorCode.NOT_ENOUGH_REPLICAS)
        given.alarms.fire()
        assert state.words == ["loaded", "one", "two"]
        assert [alarm.delay_ms for alarm in given.alarms.set] == [RETRY_MS]
        given.log.fault = None
        given.alarms.fire()
        assert state.words == ["loaded", "one", "two", "b"]
        given.runtime.resign(3)
        given.alarms.fire()
        assert state.rung == ["loaded", "b", "b"]

    run(scenario)


def test_a_record_that_cannot_be_read_does_not_take_the_others_with_it(caplog):
    class Picky(Words):
        def replay(self, record: CoordinatorRecord, producer_id: int | None) -> None:
            if record.key == b"bad":
                raise ProtocolError("bad")
            super().replay(record, producer_id)

    async def scenario(given: Given) -> None:
        await given.lead()
        for word in ("one", "bad", "two"):
            await given.add(word)
        later = Given(given.log)
        later.state = Picky()
        assert (await later.lead()).words == ["one", "two"]
        assert "skipped" in caplog.text

    run(scenario)
