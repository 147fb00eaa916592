# cython: annotation_typing=False
"""The way of nearly every fetch that finds records: from its bytes to runs of log files to an answer.

`handlers.fetch` sees all others. Ordinary is a consumer's fetch, without a session or one that goes on with
its session, of partitions that this broker leads, when there is enough to answer at once and none of it has
to come from a disk. Compiled by Cython (short_fetch.pxd has the C types),
or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.broker.fetch_sessions import FINAL_EPOCH, NO_SESSION, FetchSession, WantedPartition
from odradek.broker.file_parts import LogPart
from odradek.broker.services import Services
from odradek.broker.short_ways import answers_shortly
from odradek.common.errors import KafkaError
from odradek.log.reading import LogEnd, aborted_between, find_batches
from odradek.log.warming import is_warm, notice_cached
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import (
    READ_COMMITTED,
    TOPIC_IDS_FROM,
    FetchFrame,
    FoundRecords,
    answer_fetch,
    read_fetch,
)
from odradek.replication.partition import NO_EPOCH, Partition
from odradek.replication.replica_manager import NO_TOPIC_ID

NO_RECORDS = b""


def answer_shortly(services: Services, frame: memoryview) -> Sequence[Any] | None:
    """The parts of the answer to an ordinary request; None, and nothing has happened, for any other."""
    request = read_fetch(frame)
    if request is None:
        return None
    if request.session_epoch == FINAL_EPOCH and request.session_id == NO_SESSION:
        return _answer_once(Reads(services, request), request)
    if request.session_epoch > 0:
        session = services.fetch_sessions.get(request.session_id)
        if session is not None and session.epoch == request.session_epoch:
            return _answer_in_session(Reads(services, request), request, session)
    return None


class Reads:
    """The reads of one request, in order; nothing is counted before all of them were ordinary."""

    def __init__(self, services: Services, request: FetchFrame) -> None:
        self.services = services
        self.request = request
        self._partitions: dict[Any, Partition] = services.replicas.partitions
        self.bytes_read = 0
        self._sent: list[Any] = []

    def topic_name(self, topic: Any) -> Any:
        """The name of a topic that is told by its id in newer versions; None if it is not known here."""
        return self.services.replicas.topic_name(topic) if self.request.version >= TOPIC_IDS_FROM else topic

    def read(self, topic: Any, asked: Any) -> FoundRecords | None:
        """What there is for a consumer; None if it is not ordinary to tell."""
        partition = self._partitions.get((topic, asked.partition))
        if partition is None:
            return None
        state = partition.state
        epoch = asked.current_leader_epoch
        if state.leader_id != partition.broker_id or epoch not in (NO_EPOCH, state.leader_epoch):
            return None
        log = partition.log
        epoch = asked.last_fetched_epoch
        if (epoch >= 0 and epoch != log.epochs.latest) or log.producers.first_unstable_offset is not None:
            return None
        high_watermark = log.high_watermark
        offset = asked.fetch_offset
        if offset < log.log_start_offset or offset > high_watermark:
            return None
        records: Any = NO_RECORDS
        if offset < high_watermark:
            records = self._find(log, offset, asked.partition_max_bytes)
            if records is None:
                return None
            if records:
                self.bytes_read += len(records)
                self._sent.append((partition.traffic, len(records)))
        return FoundRecords(asked.partition, high_watermark, high_watermark, log.log_start_offset, records)

    def _find(self, log: Any, offset: int, max_bytes: int) -> Any:
        """The records as a part of a file, or none if the answer is full; None if they are not at hand."""
        request = self.request
        max_bytes = min(max_bytes, request.max_bytes)
        if not is_warm(log, offset, max_bytes) and not notice_cached(log, offset, max_bytes):
            return None
        max_bytes = min(max_bytes, max(request.max_bytes - self.bytes_read, 0))
        active = log.segments.active
        end = LogEnd(active, active.size, log.log_end_offset)
        limit = log.high_watermark
        try:
            # Only the first partition with data may pass the limits, else an answer could have any size.
            run = find_batches(
                log.segments, end, offset, limit, max_bytes, min_one_batch=self.bytes_read == 0
            )
            if run is None:
                return NO_RECORDS
            if request.isolation_level == READ_COMMITTED and aborted_between(
                log.segments, offset, run.upper_offset
            ):
                return None
            return LogPart(run.range())
        except (OSError, KafkaError):
            return None  # it will happen again where it is told

    def is_enough(self) -> bool:
        """Whether the answer may go out now."""
        return self.bytes_read >= self.request.min_bytes or self.request.max_wait_ms <= 0

    def count(self) -> None:
        """The answer goes out."""
        for traffic, size in self._sent:
            traffic.bytes_out += size


def _answer_once(reads: Reads, request: FetchFrame) -> Sequence[Any] | None:
    """Without a session every partition that is asked for is told."""
    told: dict[Any, list[FoundRecords]] = {}
    if not request.topics:
        return None
    for topic in request.topics:
        if topic.topic in told or not topic.partitions:
            return None
        name = reads.topic_name(topic.topic)
        rows: dict[int, FoundRecords] = {}
        for asked in topic.partitions:
            row = reads.read(name, asked)
            if row is None or asked.partition in rows:
                return None
            rows[asked.partition] = row
        told[topic.topic] = list(rows.values())
    if not reads.is_enough():
        return None
    reads.count()
    return answer_fetch(request, NO_SESSION, told.items())


def _answer_in_session(reads: Reads, request: FetchFrame, session: FetchSession) -> Sequence[Any] | None:
    """A session looks at all its partitions, and tells those that have news."""
    if session.uses_topic_ids != (request.version >= TOPIC_IDS_FROM):
        return None
    changed: dict[Any, Any] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            changed[(topic.topic, asked.partition)] = asked
    wanted = _wanted_now(session.wanted, changed, request.forgotten)
    found: list[Any] = []
    for key, known in wanted.items():
        row = reads.read(reads.topic_name(key[0]), changed.get(key, known.asked))
        if row is None:
            return None
        found.append((key, known, row))
    if not found or not reads.is_enough():
        return None
    session.go_on(reads.services.clock.now_ms())
    session.wanted = wanted
    for key, known, _ in found:
        known.asked = changed.get(key, known.asked)
    told = _news(found)
    session.move_to_end([key for key, _, row in found if row.records])
    reads.count()
    return answer_fetch(request, session.session_id, told.items())


def _wanted_now(wanted: dict[Any, Any], changed: dict[Any, Any], forgotten: list[Any]) -> dict[Any, Any]:
    """What a session follows after a request; `wanted` itself, or, if that is not all, a copy."""
    added = [key for key in changed if key not in wanted]
    if not added and not forgotten:
        return wanted
    wanted = dict(wanted)
    for key in added:
        topic, topic_id = ("", key[0]) if isinstance(key[0], bytes) else (key[0], NO_TOPIC_ID)
        wanted[key] = WantedPartition(topic, topic_id, changed[key])
    for key in forgotten:
        wanted.pop(key, None)
    return wanted


def _news(found: list[Any]) -> dict[Any, list[FoundRecords]]:
    """The rows that an incremental answer must name, by topic."""
    told: dict[Any, list[FoundRecords]] = {}
    for key, known, row in found:
        if known.has_moved(row) or row.records:
            told.setdefault(key[0], []).append(row)
    return told


answers_shortly(ApiKey.FETCH, answer_shortly)
