"""Fetch, API key 1: whole batches from partitions that this broker leads, straight from their files.

Versions 4-18.  4: isolation.  5: log start offset.  7: sessions (KIP-227).  9: leader epochs.  10: zstd.
11: rack.  12: flexible, diverging epochs.  13: topic ids.  15: replica state.  Followers, and reading from
them (KIP-392), come with replication.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import STEPS_PER_YIELD, CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.fetch_sessions import FetchSession, FetchSessionError, Key, WantedPartition
from odradek.broker.requests.file_parts import LogPart
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.errors import OffsetOutOfRange, StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.read_ahead import is_warm, notice_cached, warm_up
from odradek.log.partition.reading import Isolation
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import FetchFrame
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import Partition

Row = FetchResponse.Responses.Partitions
Answer = FetchResponse | None | Coroutine[Any, Any, FetchResponse | None]
ColdRead = tuple[PartitionLog, int, int]
"""A log, where to read in it, and at most how many bytes."""

TOPIC_IDS_FROM = 13
ISOLATION = {0: Isolation.HIGH_WATERMARK, 1: Isolation.COMMITTED}


@handles(ApiKey.FETCH, versions=(4, 18))
def fetch(context: RequestContext, request: FetchRequest) -> Answer:
    """Answer at once if there is enough, or a fault to tell; else wait for more.

    What may have to come from the disk is first brought into the page cache by a thread.
    """
    services = context.services
    uses_topic_ids = context.version >= TOPIC_IDS_FROM
    try:
        session, is_incremental = services.fetch_sessions.resolve(
            request, uses_topic_ids, services.clock.now_ms()
        )
    except FetchSessionError as error:
        return FetchResponse(error_code=error.error_code)
    fetching = Fetching(context, request, session, is_incremental)
    if len(session.wanted) > STEPS_PER_YIELD:
        return fetching.answer_in_turns()
    cold = fetching.cold_reads()
    return fetching.warm_up_and_answer(cold) if cold else fetching.answer_or_wait()


class Fetching:
    """One fetch: read, perhaps wait and read again, answer.

    The short way leaves one to it that has waited there and came upon something unusual.
    """

    __slots__ = (
        "bytes_read",
        "context",
        "has_faults",
        "is_incremental",
        "request",
        "room_bytes",
        "rows",
        "session",
    )

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest | FetchFrame,
        session: FetchSession,
        is_incremental: bool,
    ) -> None:
        self.context = context
        self.request = request
        self.session = session
        self.is_incremental = is_incremental
        self._begin()

    def _begin(self) -> None:
        """Nothing is read yet, and the answer has all its room."""
        self.rows: list[tuple[Key, WantedPartition, Row]] = []
        self.bytes_read = 0
        self.has_faults = False
        self.room_bytes = min(self.request.max_bytes, self.context.services.fetch_max_bytes)

    def cold_reads(self) -> list[ColdRead]:
        """The reads that may have to wait for a disk."""
        self._begin()
        reads = [self._cold_read(wanted) for wanted in self.session.wanted.values()]
        return [read for read in reads if read is not None]

    async def warm_up_and_answer(self, cold: list[ColdRead]) -> FetchResponse | None:
        """Have a thread wait for the disk, then go on as if it had been warm."""
        services = self.context.services
        await services.loop.run_in_executor(services.pool, _warm_up_all, cold)
        return None if self.context.connection.is_closed else self.answer_or_wait()

    async def answer_in_turns(self) -> FetchResponse | None:
        """Like all of this for so many partitions that others must have their turn in between.

        A client that goes on with its session meanwhile may change what it wants.
        """
        services, turns = self.context.services, CooperativeYield()
        items = list(self.session.wanted.items())
        cold: list[ColdRead] = []
        async for _, wanted in turns.over(items):
            read = self._cold_read(wanted)
            if read is not None:
                cold.append(read)
        if cold:
            await services.loop.run_in_executor(services.pool, _warm_up_all, cold)
        self._begin()
        async for key, wanted in turns.over(items):
            self._read_one(key, wanted)
        if self.context.connection.is_closed:
            return None
        if not self.is_enough():
            # All are here, then, and no broker has very many; some may have got more since they were read.
            return self.answer_or_wait()
        telling = Telling(self)
        async for key, wanted, row in turns.over(self.rows):
            telling.add(key, wanted, row)
        return telling.response()

    def answer_or_wait(self) -> FetchResponse | None:
        """The answer, if there is enough for one; else None, and it comes when there is."""
        self.read()
        if self.is_enough():
            return self.response()
        self.context.services.waiting_fetches.park(
            self.keys(),
            try_complete=self.try_again,
            timeout_ms=self.request.max_wait_ms,
            on_timeout=self.answer_as_is,
            connection=self.context.connection,
        )
        return None

    def read(self) -> None:
        """Look at every partition, in the session's order, until the answer is full."""
        self._begin()
        for key, wanted in self.session.wanted.items():
            self._read_one(key, wanted)

    def is_enough(self) -> bool:
        """Whether the answer should go out now."""
        request = self.request
        return (
            self.has_faults
            or request.max_wait_ms <= 0
            or self.bytes_read >= request.min_bytes
            or not self.session.wanted
        )

    def try_again(self) -> bool:
        """Woken: read again, and answer if it is enough now."""
        if self.context.connection.is_closed:
            return True
        self.read()
        if not self.is_enough():
            return False
        self.context.answer(self.response())
        return True

    def answer_as_is(self) -> None:
        """The client has waited long enough."""
        if not self.context.connection.is_closed:
            self.read()
            self.context.answer(self.response())

    def keys(self) -> list[Any]:
        """What to wait for."""
        found = [self._find(wanted) for wanted in self.session.wanted.values()]
        return [partition.topic_partition for partition in found if partition is not None]

    def response(self) -> FetchResponse:
        """What was read, for the client."""
        telling = Telling(self)
        for key, wanted, row in self.rows:
            telling.add(key, wanted, row)
        return telling.response()

    def topic_of(self, wanted: WantedPartition) -> str | None:
        """Its name; None if it was named by an id that is not known here."""
        if self.session.uses_topic_ids:
            return self.context.services.replicas.topic_name(wanted.topic_id)
        return wanted.topic

    def _find(self, wanted: WantedPartition) -> Partition | None:
        topic = self.topic_of(wanted)
        return None if topic is None else self.context.services.replicas.find(topic, wanted.partition)

    def _cold_read(self, wanted: WantedPartition) -> ColdRead | None:
        """How to read a partition that may have to come from a disk; None if it need not."""
        partition = self._find(wanted)
        if partition is None:
            return None
        asked = wanted.asked
        max_bytes = min(asked.partition_max_bytes, max(self.room_bytes, 0))
        log, offset = partition.log, asked.fetch_offset
        if is_warm(log, offset, max_bytes) or notice_cached(log, offset, max_bytes):
            return None
        self.room_bytes -= max_bytes
        return log, offset, max_bytes

    def _read_one(self, key: Key, wanted: WantedPartition) -> None:
        row = Row(partition_index=wanted.partition, high_watermark=-1, records=b"")
        self.rows.append((key, wanted, row))
        topic, partition = self.topic_of(wanted), self._find(wanted)
        if topic is None:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif partition is None:
            row.error_code = self.context.services.why_not_here(topic, wanted.partition)
        else:
            try:
                self._read_into(row, partition, wanted.asked)
            except KafkaError as error:
                self._tell_error(row, topic, error)
        self.has_faults |= bool(row.error_code) or row.diverging_epoch.epoch >= 0

    def _read_into(self, row: Row, partition: Partition, asked: Any) -> None:
        row.aborted_transactions = None
        partition.require_leader(asked.current_leader_epoch)
        if asked.last_fetched_epoch >= 0 and _diverges(row, partition, asked):
            return
        max_bytes = min(asked.partition_max_bytes, max(self.room_bytes, 0))
        fetched = partition.log.read(
            asked.fetch_offset,
            max_bytes,
            isolation=ISOLATION.get(self.request.isolation_level, Isolation.HIGH_WATERMARK),
            # Only the first partition with data may pass the limits, else an answer could have any size.
            min_one_batch=self.bytes_read == 0,
        )
        row.high_watermark = fetched.high_watermark
        row.last_stable_offset = fetched.last_stable_offset
        row.log_start_offset = fetched.log_start_offset
        if fetched.range is not None:
            row.records = LogPart(fetched.range)
            self.bytes_read += len(row.records)
            self.room_bytes -= len(row.records)
        if fetched.aborted is not None:
            row.aborted_transactions = [
                Row.AbortedTransactions(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in fetched.aborted
            ]

    def _tell_error(self, row: Row, topic: str, error: KafkaError) -> None:
        services = self.context.services
        row.error_code = error.error_code
        if isinstance(error, NotLeaderOrFollower):
            row.current_leader.leader_id = error.leader_id
            row.current_leader.leader_epoch = error.leader_epoch
        elif isinstance(error, StorageError):
            services.replicas.disk_failed(TopicPartition(topic, row.partition_index), error)


class Telling:
    """The rows of one answer, by topic; in an incremental session only those that have news."""

    __slots__ = ("_fetching", "_sent", "_topics")

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching
        self._topics: dict[Any, FetchResponse.Responses] = {}
        self._sent: list[Key] = []

    def add(self, key: Key, wanted: WantedPartition, row: Row) -> None:
        """Tell of one more partition, if there is anything to tell."""
        if not wanted.has_news(row) and self._fetching.is_incremental:
            return
        topic = self._topics.get(key[0])
        if topic is None:
            topic = FetchResponse.Responses(topic=wanted.topic, topic_id=wanted.topic_id)
            self._topics[key[0]] = topic
        topic.partitions.append(row)
        if row.records:
            self._sent.append(key)
            self._count(wanted, len(row.records))

    def _count(self, wanted: WantedPartition, sent_bytes: int) -> None:
        fetching = self._fetching
        traffic = fetching.context.services.replicas.traffic.get(fetching.topic_of(wanted) or "")
        if traffic is not None:
            traffic.bytes_out += sent_bytes

    def response(self) -> FetchResponse:
        """All of it; partitions that gave something come last the next time."""
        session = self._fetching.session
        session.move_to_end([key for key in self._sent if key in session.wanted])
        return FetchResponse(session_id=session.session_id, responses=list(self._topics.values()))


def _warm_up_all(cold: list[ColdRead]) -> None:
    for log, offset, max_bytes in cold:
        warm_up(log, offset, max_bytes)


def _diverges(row: Row, partition: Partition, asked: Any) -> bool:
    """Whether the client's log went another way than ours; then it is told where they part (KIP-595)."""
    log = partition.log
    end = log.end_offset_for_epoch(asked.last_fetched_epoch)
    if end.epoch < 0:
        # An epoch that this log has not seen: there is no place to tell where the logs part.
        raise OffsetOutOfRange(asked.fetch_offset, log.log_start_offset, log.log_end_offset)
    if end.epoch == asked.last_fetched_epoch and end.end_offset >= asked.fetch_offset:
        return False
    row.diverging_epoch.epoch = end.epoch
    row.diverging_epoch.end_offset = end.end_offset
    row.high_watermark = log.high_watermark
    row.log_start_offset = log.log_start_offset
    return True
