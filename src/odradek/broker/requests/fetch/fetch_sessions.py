# cython: annotation_typing=False
"""Fetch sessions (KIP-227): the partitions that a client reads are kept, so that requests name only changes.

Compiled by Cython (fetch_sessions.pxd has the C types), or interpreted as is.

| session id | epoch | meaning |
| --- | --- | --- |
| any | -1 | no session; an old one of that id ends |
| any | 0 | a full request; begins a new session, an old one of that id ends |
| n | e > 0 | request e of session n: partitions added, changed, forgotten |
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.replication.partition import Partition

if TYPE_CHECKING:
    from odradek.protocol.messages import FetchRequest

NO_SESSION = 0
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1
EVICTABLE_AFTER_MS = 120_000
_FINAL_EPOCH, _INITIAL_EPOCH, _MAX_EPOCH = FINAL_EPOCH, INITIAL_EPOCH, MAX_EPOCH

Key = tuple[Any, int]
"""Topic id or name, as the client names it, and partition."""


class FetchSessionError(KafkaError):
    """The client must start a new session."""


class FetchPartition:
    """One partition of a fetch: what the client asks for, and what the last response said of it.

    `follower_start_offset`: where the log of a follower begins.
    `replica`: the partition here, as it was found when it was last read; None if it is not here.
    """

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "follower_start_offset",
        "high_watermark",
        "last_fetched_epoch",
        "last_stable_offset",
        "log_start_offset",
        "max_bytes",
        "partition",
        "replica",
        "topic",
        "topic_id",
        "was_returned",
    )

    replica: Partition | None

    def __init__(self, topic: str, topic_id: bytes, asked: FetchRequest.Topics.Partitions) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = asked.partition
        self.replica = None
        self.was_returned = False
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.ask(asked)

    def ask(self, asked: FetchRequest.Topics.Partitions) -> None:
        """Update from a request."""
        self.current_leader_epoch = asked.current_leader_epoch
        self.fetch_offset = asked.fetch_offset
        self.last_fetched_epoch = asked.last_fetched_epoch
        self.follower_start_offset = asked.log_start_offset
        self.max_bytes = asked.partition_max_bytes

    def has_changed(self, row: Any) -> bool:
        """Whether an incremental response must name this partition; records what it will say."""
        high_watermark, last_stable_offset = row.high_watermark, row.last_stable_offset
        log_start_offset = row.log_start_offset
        has_error = row.error_code != 0
        has_changed = (
            has_error
            or not self.was_returned
            or high_watermark != self.high_watermark
            or last_stable_offset != self.last_stable_offset
            or log_start_offset != self.log_start_offset
            or len(row.records) > 0
            or row.diverging_epoch.epoch >= 0
            or row.preferred_read_replica >= 0
        )
        # After an error the partition is included again, whatever its offsets are.
        self.was_returned = not has_error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        return has_changed


class FetchSession:
    """The partitions of one client, in the order in which they are read."""

    __slots__ = ("epoch", "last_used_ms", "session_id", "uses_topic_ids", "wanted")

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int) -> None:
        self.session_id = session_id
        self.epoch = INITIAL_EPOCH
        self.uses_topic_ids = uses_topic_ids
        self.last_used_ms = now_ms
        self.wanted: dict[Key, FetchPartition] = {}

    def go_on(self, now_ms: int) -> None:
        """A request of this session is served; the next one has the next epoch."""
        self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        self.last_used_ms = now_ms

    def update(self, request: FetchRequest) -> None:
        """Add, change and remove the partitions of a request."""
        uses_topic_ids = self.uses_topic_ids
        wanted = self.wanted
        for topic in request.topics:
            name = topic.topic_id if uses_topic_ids else topic.topic
            for asked in topic.partitions:
                key = (name, asked.partition)
                known = wanted.get(key)
                if known is None:
                    wanted[key] = FetchPartition(topic.topic, topic.topic_id, asked)
                else:
                    known.ask(asked)
        if request.forgotten_topics_data:
            self._forget(request)

    def _forget(self, request: FetchRequest) -> None:
        for topic in request.forgotten_topics_data:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for partition in topic.partitions:
                self.wanted.pop((name, partition), None)

    def move_to_end(self, keys: Iterable[Key]) -> None:
        """Partitions that returned data are last next time, so that none starves."""
        wanted = self.wanted
        for key in keys:
            known = wanted.pop(key, None)
            if known is not None:
                wanted[key] = known


class FetchSessions:
    """The sessions of this broker, at most `max_sessions`. Owned by the broker, on the loop."""

    def __init__(self, max_sessions: int) -> None:
        self.max_sessions = max_sessions
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """The session of that id, if there is one."""
        return self._sessions.get(session_id)

    def resolve(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> tuple[FetchSession, bool]:
        """The session of a request, and whether the response is incremental.

        A session whose id is 0 is of this request only. Raises FetchSessionError.
        """
        epoch = request.session_epoch
        if epoch == _FINAL_EPOCH or epoch == _INITIAL_EPOCH:  # noqa: PLR1714, SIM109
            self._sessions.pop(request.session_id, None)
            return self._begin(request, uses_topic_ids, now_ms), False
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionError(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.uses_topic_ids != uses_topic_ids:
            raise FetchSessionError(error_code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if epoch != session.epoch:
            raise FetchSessionError(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.go_on(now_ms)
        session.update(request)
        return session, True

    def _begin(self, request: FetchRequest, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        session_id = NO_SESSION
        if request.session_epoch == INITIAL_EPOCH and request.topics and self._has_room(now_ms):
            session_id = self._new_id()
        session = FetchSession(session_id, uses_topic_ids, now_ms)
        session.epoch = 1
        session.update(request)
        if session_id != NO_SESSION:
            self._sessions[session_id] = session
        return session

    def _has_room(self, now_ms: int) -> bool:
        if len(self._sessions) < self.max_sessions:
            return True
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - oldest.last_used_ms < EVICTABLE_AFTER_MS:
            return False
        del self._sessions[oldest.session_id]
        return True

    def _new_id(self) -> int:
        while True:
            session_id = random.randint(1, MAX_EPOCH)
            if session_id not in self._sessions:
                return session_id
