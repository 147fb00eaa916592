# cython: annotation_typing=False
"""The way of nearly every fetch of a consumer: from its bytes to runs of log files to an answer.

`handlers.fetch` sees all others. Ordinary is a fetch without a session, or one that goes on with its
session, of partitions that this broker leads, when nothing has to come from a disk. One that finds too little
waits, and what it is woken for takes this way again, or, if it has become unusual, the long one.

Compiled by Cython (short_fetch.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.fetch_sessions import FINAL_EPOCH, NO_SESSION, FetchSession, WantedPartition
from odradek.broker.requests.late_answers import LateAnswer
from odradek.broker.requests.services import Services
from odradek.broker.requests.short_reads import Reads
from odradek.broker.requests.short_ways import answers_shortly
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_frames import (
    TOPIC_IDS_FROM,
    FetchFrame,
    FoundRecords,
    answer_fetch,
    read_fetch,
)
from odradek.replication.replica_manager import NO_TOPIC_ID

NO_LISTENER = ""  # what a fetch is told is the same on all of them
Found = list[tuple[Any, WantedPartition, FoundRecords]]
"""By the key of the session: what is wanted, and what there is."""


def answer_shortly(services: Services, frame: memoryview) -> Sequence[Any] | LateAnswer | None:
    """The parts of the answer to an ordinary request, or the wait for it; None, and nothing has happened,
    for any other.
    """
    request = read_fetch(frame)
    if request is None:
        return None
    if request.session_epoch == FINAL_EPOCH and request.session_id == NO_SESSION:
        return _answer_once(services, request)
    if request.session_epoch > 0:
        session = services.fetch_sessions.get(request.session_id)
        if session is not None and session.epoch == request.session_epoch:
            return _answer_in_session(services, request, session)
    return None


def _answer_once(services: Services, request: FetchFrame) -> Sequence[Any] | LateAnswer | None:
    """Without a session every partition that is asked for is told."""
    asked = _asked(request)
    session = FetchSession(NO_SESSION, request.version >= TOPIC_IDS_FROM, 0)
    session.wanted = _wanted_now({}, asked, [])
    fetch = ShortFetch(services, request, session, False)
    found = fetch.read(session.wanted, asked)
    if found is None or len(found) < _partition_count(request):
        return None  # it asks for a partition twice, or for none
    return fetch.answer_or_wait(found)


def _answer_in_session(
    services: Services, request: FetchFrame, session: FetchSession
) -> Sequence[Any] | LateAnswer | None:
    """A session looks at all its partitions, and tells those that have news."""
    if session.uses_topic_ids != (request.version >= TOPIC_IDS_FROM):
        return None
    changed = _asked(request)
    wanted = _wanted_now(session.wanted, changed, request.forgotten)
    fetch = ShortFetch(services, request, session, True)
    found = fetch.read(wanted, changed)
    if found is None:
        return None
    session.go_on(services.clock.now_ms())
    session.wanted = wanted
    for key, known, _ in found:
        known.asked = changed.get(key, known.asked)
    return fetch.answer_or_wait(found)


class ShortFetch(LateAnswer):
    """One fetch: read, perhaps wait and read again, answer."""

    __slots__ = ("_reads", "is_incremental", "request", "services", "session")

    _reads: Reads

    def __init__(
        self, services: Services, request: FetchFrame, session: FetchSession, is_incremental: bool
    ) -> None:
        super().__init__()
        self.services = services
        self.request = request
        self.session = session
        self.is_incremental = is_incremental

    def read(self, wanted: dict[Any, WantedPartition], changed: dict[Any, Any]) -> Found | None:
        """What there is of every partition that is wanted; None if it is not ordinary to tell."""
        reads = self._reads = Reads(self.services, self.request)
        found: Found = []
        for key, known in wanted.items():
            row = reads.read(reads.partition(key), changed.get(key, known.asked))
            if row is None:
                return None
            found.append((key, known, row))
        return found or None

    def answer_or_wait(self, found: Found) -> Sequence[Any] | LateAnswer:
        """The answer, if that is enough for one; else the wait for it."""
        return self._parts(found) if self._reads.is_enough() else self

    def _parts(self, found: Found) -> Sequence[Any]:
        """The answer with all of it, or in a session with what is new."""
        told: dict[Any, list[FoundRecords]] = {}
        sent: list[Any] = []
        for key, known, row in found:
            has_records = len(row.records) > 0
            if has_records:
                sent.append(key)
            if known.has_moved(row) or has_records or not self.is_incremental:
                told.setdefault(key[0], []).append(row)
        self.session.move_to_end(sent)
        self._reads.count()
        return answer_fetch(self.request, self.session.session_id, told)

    def park(self) -> None:
        """Wait for more in any of the partitions."""
        keys: list[Any] = []
        for key in self.session.wanted:
            partition = self._reads.partition(key)
            assert partition is not None, "it was read just now"
            keys.append(partition.topic_partition)
        self.services.waiting_fetches.add(self, tuple(keys), self.request.max_wait_ms)

    def complete(self, is_over: bool) -> bool:
        """Read again, and answer if it is enough now, or if the client has waited long enough."""
        found = None if self.services.quotas is not None else self.read(self.session.wanted, {})
        if found is None:
            return self._complete_at_length(is_over)
        if not is_over and not self._reads.is_enough():
            return False
        self.answer(self._parts(found))
        return True

    def _complete_at_length(self, is_over: bool) -> bool:
        """Something has become unusual while it waited: let the general way look at it."""
        # The file of a handler is imported when it is needed first (ADR 4).
        from odradek.broker.handlers.fetch import Fetching  # noqa: PLC0415

        request = self.request
        assert self.connection is not None
        context = RequestContext(
            self.services,
            NO_LISTENER,
            self.connection,
            self.exchange,
            ApiKey.FETCH,
            request.version,
            request.correlation_id,
            request.client_id,
            self.counters,
        )
        context.started = self.started
        fetching = Fetching(context, request, self.session, self.is_incremental)
        if not is_over:
            return fetching.try_again()
        fetching.answer_as_is()
        return True


def _asked(request: FetchFrame) -> dict[Any, Any]:
    """What a request asks for, by the keys of a session."""
    asked: dict[Any, Any] = {}
    for topic in request.topics:
        for one in topic.partitions:
            asked[(topic.topic, one.partition)] = one
    return asked


def _partition_count(request: FetchFrame) -> int:
    count = 0
    for topic in request.topics:
        count += len(topic.partitions)
    return count


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


answers_shortly(ApiKey.FETCH, answer_shortly)
