"""Fetch, API key 1: whole batches from partitions that this broker leads, straight from their files.

Versions 4-18.  4: isolation.  5: log start offset.  7: sessions (KIP-227).  9: leader epochs.  10: zstd.
11: rack.  12: flexible, diverging epochs.  13: topic ids.  15: replica state.  Followers, and reading from
them (KIP-392), come with replication.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from odradek.broker.context import RequestContext
from odradek.broker.dispatch import handles
from odradek.broker.fetch_sessions import FetchSession, FetchSessionError, Key, WantedPartition
from odradek.broker.file_parts import LogPart
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.errors import OffsetOutOfRange, StorageError
from odradek.log.partition_log import PartitionLog
from odradek.log.reading import Isolation
from odradek.log.warming import is_warm, notice_cached, warm_up
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import FetchFrame
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.partition import Partition
from odradek.replication.replica_manager import UnknownPartition

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
    cold = fetching.cold_reads()
    return fetching.warm_up_and_answer(cold) if cold else fetching.answer_or_wait()


class Fetching:
    """One fetch: read, perhaps wait and read again, answer.

    The short way leaves one to it that has waited there and came upon something unusual.
    """

    __slots__ = ("bytes_read", "context", "has_faults", "is_incremental", "request", "rows", "session")

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
        self.rows: dict[Key, Row] = {}
        self.bytes_read = 0
        self.has_faults = False

    def cold_reads(self) -> list[ColdRead]:
        """The reads that may have to wait for a disk."""
        cold = []
        room = self.request.max_bytes
        find = self.context.services.replicas.find
        for wanted in self.session.wanted.values():
            topic = self._topic(wanted)
            partition = find(topic, wanted.partition) if topic is not None else None
            if partition is not None:
                asked = wanted.asked
                max_bytes = min(asked.partition_max_bytes, max(room, 0))
                log, offset = partition.log, asked.fetch_offset
                if not is_warm(log, offset, max_bytes) and not notice_cached(log, offset, max_bytes):
                    cold.append((log, offset, max_bytes))
                    room -= max_bytes
        return cold

    async def warm_up_and_answer(self, cold: list[ColdRead]) -> FetchResponse | None:
        """Have a thread wait for the disk, then go on as if it had been warm."""
        services = self.context.services
        await services.loop.run_in_executor(services.pool, _warm_up_all, cold)
        return None if self.context.connection.is_closed else self.answer_or_wait()

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
        self.rows = {}
        self.bytes_read = 0
        self.has_faults = False
        room = self.request.max_bytes
        for key, wanted in self.session.wanted.items():
            row = self._read_one(wanted, room)
            if row.records is not None:
                self.bytes_read += len(row.records)
                room -= len(row.records)
            self.has_faults |= bool(row.error_code) or row.diverging_epoch.epoch >= 0
            self.rows[key] = row

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
        replicas = self.context.services.replicas
        keys = []
        for wanted in self.session.wanted.values():
            topic = self._topic(wanted)
            partition = replicas.find(topic, wanted.partition) if topic is not None else None
            if partition is not None:
                keys.append(partition.topic_partition)
        return keys

    def response(self) -> FetchResponse:
        """The rows by topic; in an incremental session only those that have news."""
        told = {
            key: row
            for key, row in self.rows.items()
            if self.session.wanted[key].has_news(row) or not self.is_incremental
        }
        topics: dict[Any, FetchResponse.Responses] = {}
        for key, row in told.items():
            wanted = self.session.wanted[key]
            topic = topics.get(key[0])
            if topic is None:
                topic = topics[key[0]] = FetchResponse.Responses(topic=wanted.topic, topic_id=wanted.topic_id)
            topic.partitions.append(row)
            if row.records:
                self._count(wanted, len(row.records))
        self.session.move_to_end([key for key, row in told.items() if row.records])
        return FetchResponse(session_id=self.session.session_id, responses=list(topics.values()))

    def _count(self, wanted: WantedPartition, sent_bytes: int) -> None:
        traffic = self.context.services.replicas.traffic.get(self._topic(wanted) or "")
        if traffic is not None:
            traffic.bytes_out += sent_bytes

    def _topic(self, wanted: WantedPartition) -> str | None:
        if self.session.uses_topic_ids:
            return self.context.services.replicas.topic_name(wanted.topic_id)
        return wanted.topic

    def _read_one(self, wanted: WantedPartition, room: int) -> Row:
        row = Row(partition_index=wanted.partition, high_watermark=-1, records=b"")
        topic = self._topic(wanted)
        if topic is None:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            return row
        try:
            partition = self.context.services.replicas.get(topic, wanted.partition)
            self._read_into(row, partition, wanted.asked, room)
        except KafkaError as error:
            self._tell_error(row, topic, error)
        return row

    def _read_into(self, row: Row, partition: Partition, asked: Any, room: int) -> None:
        row.aborted_transactions = None
        partition.require_leader(asked.current_leader_epoch)
        if asked.last_fetched_epoch >= 0 and _diverges(row, partition, asked):
            return
        max_bytes = min(asked.partition_max_bytes, max(room, 0))
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
        elif isinstance(error, UnknownPartition):
            row.error_code = services.why_not_here(topic, row.partition_index)
        elif isinstance(error, StorageError):
            services.replicas.disk_failed(TopicPartition(topic, row.partition_index), error)


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
