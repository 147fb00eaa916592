"""Runs a coordinator over an internal topic: load, replay, decide, write, respond after commit.

    lead()     the log is replayed; until then COORDINATOR_LOAD_IN_PROGRESS
        run()      decide on the state → append the records → update the state → respond after commit
        resign()   the state is dropped; waiting requests fail with NOT_COORDINATOR

Deciding, appending and updating the state happen in one step on the loop, so that the state never differs
from the log. Uncommitted state is never visible to clients: responses wait for the commit, and if leadership
is lost before, the state is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar, cast

from odradek.common.clock import Clock
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordinator.ports import PartitionWriter, Timer
from odradek.coordinator.result import (
    CoordinatorRecord,
    ParkedResponse,
    Response,
    Result,
    StartTimer,
    TransactionMarker,
)
from odradek.coordinator.shard import NOTHING_WRITTEN, Shard, State
from odradek.protocol.errors import ProtocolError
from odradek.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, iterate_headers
from odradek.records.builder import build_batch_from_columns
from odradek.records.compression import Codec
from odradek.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    read_control_type,
)
from odradek.records.record import read_records

logger = logging.getLogger(__name__)

RETRY_MS = 500
RECORDS_AT_A_TIME = 500
MAX_DECOMPRESSED_BYTES = 1 << 30

# Errors of the log, as clients of the coordinator get them.
_AS_COORDINATOR = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

Found = TypeVar("Found")


class CoordinatorRuntime(Generic[State]):
    """The shards of one internal topic on this broker. Owned by the broker, on the loop."""

    def __init__(
        self,
        writer: PartitionWriter,
        timer: Timer,
        clock: Clock,
        new_state: Callable[[int], State],
        *,
        commit_timeout_ms: int,
        codec: Codec = Codec.NONE,
    ) -> None:
        self._writer = writer
        self._timer = timer
        self._clock = clock
        self._new_state = new_state
        self._commit_timeout_ms = commit_timeout_ms
        self._codec = codec
        self._shards: dict[int, Shard[State]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # Leadership

    def lead(self, partition: int, leader_epoch: int, led_since: int | None = None) -> None:
        """Load a partition that this broker leads in this epoch, unless it is loaded already.

        `led_since`: from which epoch on this broker has led it. Nobody else has written since, so that its
        state is kept; None to load it in every epoch.
        """
        shard = self._shards.get(partition)
        if shard is not None:
            if shard.leader_epoch >= leader_epoch:
                return
            if led_since is not None and shard.leader_epoch >= led_since:
                shard.leader_epoch = leader_epoch
                return
            self.resign(partition)
        shard = Shard(partition, leader_epoch, self._new_state(partition), self._timer)
        self._shards[partition] = shard
        end_offset = self._writer.end_offset(partition)
        if end_offset == 0:
            self._loaded(shard)
        else:
            self._in_background(self._load(shard, end_offset))

    def resign(self, partition: int) -> None:
        """Drop a partition that this broker does not lead."""
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close(_not_coordinator(partition))

    def close(self) -> None:
        """Drop all partitions."""
        for partition in list(self._shards):
            self.resign(partition)
        for task in self._tasks:
            task.cancel()

    def partitions(self) -> list[int]:
        """The partitions of this coordinator, loaded or not."""
        return sorted(self._shards)

    def leader_epoch(self, partition: int) -> int:
        """The epoch in which this broker leads a partition; NOT_COORDINATOR if it does not."""
        shard = self._shards.get(partition)
        if shard is None:
            raise _not_coordinator(partition)
        return shard.leader_epoch

    def state(self, partition: int) -> State:
        """The state of a partition, which may not be committed yet: not for responses."""
        return self._active(partition).state

    def loaded_states(self) -> list[State]:
        """The states of the partitions that are loaded; for metrics."""
        return [shard.state for shard in self._shards.values() if shard.is_loaded]

    async def _load(self, shard: Shard[State], end_offset: int) -> None:
        while not shard.is_closed:
            try:
                async for piece in self._writer.read(shard.partition, end_offset):
                    await self._replay(shard, piece)
                    if shard.is_closed:
                        return
            except KafkaError as error:
                logger.error("cannot load partition %d of the coordinator: %s", shard.partition, error)
                await asyncio.sleep(RETRY_MS / 1000)
                shard.state = self._new_state(shard.partition)
            else:
                # Replayed records may lie above the high watermark: reads wait until they are committed.
                shard.last_offset = max(shard.last_offset, end_offset - 1)
                self._loaded(shard)
                return

    def _loaded(self, shard: Shard[State]) -> None:
        shard.is_loaded = True
        now_ms = self._clock.now_ms()
        self._carry_out(shard, shard.state.on_loaded(now_ms), now_ms)

    async def _replay(self, shard: Shard[State], piece: bytes) -> None:
        replayed = 0
        for position, header in iterate_headers(piece):
            replayed += header.record_count
            shard.last_offset = max(shard.last_offset, header.last_offset)
            if replayed > RECORDS_AT_A_TIME:
                # Let other tasks run.
                await asyncio.sleep(0)
                replayed = 0
            producer_id = header.producer_id if header.is_transactional else None
            for record in read_records(piece, position, max_bytes=MAX_DECOMPRESSED_BYTES):
                if header.is_control:
                    ends = read_control_type(record.key)
                    if ends in (ControlType.COMMIT, ControlType.ABORT):
                        shard.state.replay_end_of_transaction(
                            header.producer_id, is_commit=ends is ControlType.COMMIT
                        )
                elif record.key is not None:
                    self._replay_record(shard, record.offset, record.key, record.value, producer_id)

    def _replay_record(
        self, shard: Shard[State], offset: int, key: bytes, value: bytes | None, producer_id: int | None
    ) -> None:
        try:
            shard.state.replay(CoordinatorRecord(key, value), producer_id)
        except ProtocolError as error:
            # One unreadable record must not make the whole partition unavailable.
            logger.error(
                "skipped the record at offset %d of partition %d: %s", offset, shard.partition, error
            )

    # Decisions

    async def run(self, partition: int, decide: Callable[[State, int], Result[Response]]) -> Response:
        """Decide on the state of a partition, write the records, and respond once they are committed."""
        shard = self._active(partition)
        now_ms = self._clock.now_ms()
        result = decide(shard.state, now_ms)
        offset = self._write(shard, result, now_ms)
        parked = shard.park(result.parked_under) if result.parked_under is not None else None
        self._apply(shard, result)
        if parked is not None:
            self._respond_once_committed(shard, offset, result.parked_responses)
            return cast("Response", await parked)
        await self._committed(shard, offset)
        shard.complete(result.parked_responses)
        return cast("Response", result.response)

    async def read(self, partition: int, query: Callable[[State, int], Found]) -> Found:
        """The result of `query` on the state of a partition, once all that it may have read is committed."""
        shard = self._active(partition)
        found = query(shard.state, self._clock.now_ms())
        await self._committed(shard, shard.last_offset)
        return found

    async def end_transaction(self, partition: int, marker: TransactionMarker) -> None:
        """Write the marker of a transaction, after which its records take effect or are dropped."""
        shard = self._active(partition)
        now_ms = self._clock.now_ms()
        batch = build_end_transaction_marker(
            EndTransactionMarker(
                ControlType.COMMIT if marker.is_commit else ControlType.ABORT, marker.coordinator_epoch
            ),
            producer_id=marker.producer.producer_id,
            producer_epoch=marker.producer.producer_epoch,
            timestamp_ms=now_ms,
        )
        try:
            shard.last_offset = self._writer.append(
                partition, shard.leader_epoch, batch, now_ms, marker.transaction_version
            )
        except KafkaError as error:
            raise _as_coordinator(error) from error
        shard.state.replay_end_of_transaction(marker.producer.producer_id, is_commit=marker.is_commit)
        await self._committed(shard, shard.last_offset)

    def _active(self, partition: int) -> Shard[State]:
        shard = self._shards.get(partition)
        if shard is None:
            raise _not_coordinator(partition)
        if not shard.is_loaded:
            raise KafkaError("the partition is loading", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _on_timer(self, shard: Shard[State], key: Hashable) -> None:
        now_ms = self._clock.now_ms()
        try:
            self._carry_out(shard, shard.state.on_timer(key, now_ms), now_ms)
        except KafkaError as error:
            logger.warning("partition %d: %s is retried: %s", shard.partition, key, error)
            shard.set_timers([StartTimer(key, RETRY_MS)], self._on_timer)

    def _carry_out(self, shard: Shard[State], result: Result[Any], now_ms: int) -> None:
        """Apply the result of a timer or of a load."""
        offset = self._write(shard, result, now_ms)
        self._apply(shard, result)
        self._respond_once_committed(shard, offset, result.parked_responses)

    def _write(self, shard: Shard[State], result: Result[Any], now_ms: int) -> int:
        """Append the records; the offset that must be committed before responses are sent."""
        if not result.records:
            # The result may depend on records that are not committed yet.
            return shard.last_offset
        producer = result.producer
        batch = build_batch_from_columns(
            [record.key for record in result.records],
            [record.value for record in result.records],
            [now_ms] * len(result.records),
            codec=self._codec,
            producer_id=producer.producer_id if producer else NO_PRODUCER_ID,
            producer_epoch=producer.producer_epoch if producer else NO_PRODUCER_EPOCH,
            is_transactional=producer is not None,
        )
        try:
            shard.last_offset = self._writer.append(shard.partition, shard.leader_epoch, batch, now_ms)
        except KafkaError as error:
            raise _as_coordinator(error) from error
        return shard.last_offset

    def _apply(self, shard: Shard[State], result: Result[Any]) -> None:
        if result.on_written is not None:
            result.on_written()
        else:
            producer_id = result.producer.producer_id if result.producer else None
            for record in result.records:
                shard.state.replay(record, producer_id)
        shard.set_timers(result.timers, self._on_timer)

    # Commit

    async def _committed(self, shard: Shard[State], offset: int) -> None:
        if offset == NOTHING_WRITTEN or self._writer.is_committed(shard.partition, offset):
            return
        try:
            await self._writer.wait_committed(shard.partition, offset, self._commit_timeout_ms)
        except KafkaError as error:
            raise _as_coordinator(error) from error

    def _respond_once_committed(
        self, shard: Shard[State], offset: int, answers: Iterable[ParkedResponse]
    ) -> None:
        if not answers:
            return
        if offset == NOTHING_WRITTEN or self._writer.is_committed(shard.partition, offset):
            shard.complete(answers)
            return
        self._in_background(self._respond_later(shard, offset, tuple(answers)))

    async def _respond_later(
        self, shard: Shard[State], offset: int, answers: tuple[ParkedResponse, ...]
    ) -> None:
        try:
            await self._committed(shard, offset)
        except KafkaError as error:
            shard.fail([answer.key for answer in answers], error)
        else:
            shard.complete(answers)

    def _in_background(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _not_coordinator(partition: int) -> KafkaError:
    return KafkaError(f"partition {partition} is coordinated elsewhere", error_code=ErrorCode.NOT_COORDINATOR)


def _as_coordinator(error: KafkaError) -> KafkaError:
    code = _AS_COORDINATOR.get(error.error_code, error.error_code)
    return KafkaError(str(error), error_code=code)
