# cython: annotation_typing=False
"""The way of a fetch that finds all as it was: records of one partition come, and more of them are asked for.

A consumer that keeps up with its producers gets little at a time, and often; what it then asks is what it
asked before, but for an offset. So the request is made from a template, and the answer read without the
schema. All that is not as usual is left to the fetcher.

Compiled by Cython (steady_way.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from typing import NamedTuple, Protocol

from odradek.client.brokers import Brokers
from odradek.client.connection import BrokerConnection
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.fetch_session import FetchSession
from odradek.client.consumer.fetched import Fetched
from odradek.client.consumer.positions import MOST_BUFFERED, PartitionState
from odradek.client.errors import ClientError
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.fetch_template import (
    FIRST_VERSION,
    LAST_VERSION,
    FetchTemplate,
    read_plain_fetch,
    row_name,
)
from odradek.protocol.messages import FetchRequest

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.ticks import monotonic_seconds
else:
    from odradek.common.ticks import monotonic_seconds

_log = logging.getLogger("odradek.consumer")


class Fetching(Protocol):
    """What a fetch on its way needs of the fetcher."""

    config: ConsumerConfig
    brokers: Brokers
    changes: int
    timeout_ms: int

    def is_steady(self, changes: int, edition: int) -> bool:
        """Whether all that a fetch depends on is as it was then."""

    def needs_refresh(self, now_ms: float) -> bool:
        """Whether the metadata is known to be wrong, or old."""

    def topic_id(self, topic: str) -> bytes:
        """As the metadata tells."""

    def request_for(self, fetch: FetchOnItsWay, state: PartitionState) -> FetchRequest:
        """A request that names this partition only."""

    def deliver(self, fetched: Fetched) -> None:
        """Hand out what came."""

    def answered(self, fetch: FetchOnItsWay, frame: memoryview | None) -> None:
        """An answer that is not as usual came, or (None) never will."""

    def go_on(self, fetch: FetchOnItsWay) -> None:
        """All was taken, and something else is to be asked now."""

    def could_not_ask(self, fetch: FetchOnItsWay) -> None:
        """The connection is gone."""


class Expected(NamedTuple):
    """One partition of a fetch that is on its way, as it was when that was sent."""

    state: PartitionState
    generation: int
    offset: int


class FetchOnItsWay:
    """A fetch that one broker has, and the steady ones that follow it; see `in_flight.Answer`.

    `changes` and `edition` are those of the fetcher and the metadata when it was made: as long as both stand,
    everything but what the answer tells is as it was.
    """

    __slots__ = (
        "_changes",
        "_edition",
        "_fetcher",
        "_is_steady",
        "_templates",
        "connection",
        "expected",
        "node_id",
        "session",
        "version",
    )

    def __init__(
        self,
        fetcher: Fetching,
        node_id: int,
        version: int,
        connection: BrokerConnection,
        session: FetchSession,
        expected: dict[TopicPartition, Expected],
        *,
        is_hurried: bool,
    ) -> None:
        self._fetcher = fetcher
        self.node_id = node_id
        self.version = version
        self.connection = connection
        self.session = session
        self.expected = expected
        self._changes = fetcher.changes
        self._edition = fetcher.brokers.metadata.edition
        self._templates: dict[bytes, tuple[TopicPartition, FetchTemplate]] = {}
        # One in a hurry is not to be repeated as it is.
        self._is_steady = FIRST_VERSION <= version <= LAST_VERSION and not is_hurried

    def done(self) -> bool:
        """There is always somebody."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """The answer came."""
        try:
            is_taken = self._take(frame)
        except Exception:
            _log.exception("a bug in the steady way of a fetch; it is asked anew")
            self._fetcher.answered(self, None)
            return
        if not is_taken:
            self._fetcher.answered(self, frame)

    def set_exception(self, error: BaseException, /) -> None:
        """It never will."""
        self._fetcher.answered(self, None)

    def exception(self) -> BaseException | None:
        """Nothing is kept here."""
        return None

    def _take(self, frame: memoryview) -> bool:
        """Deliver what came and ask for more; False, and nothing is done, if it is not as usual."""
        fetcher, session = self._fetcher, self.session
        if not self._is_steady or not fetcher.is_steady(self._changes, self._edition):
            return False
        if not session.session_id:
            return False
        answer = read_plain_fetch(frame, session.session_id)
        if answer is None:
            return False
        known = self._templates.get(answer.name) or self._find(answer.name)
        if known is None:
            return False
        partition, template = known
        one = self.expected[partition]
        state = one.state
        if one.generation != state.generation:
            return False
        fetched = Fetched(state, one.offset, answer.records, checks_crc=fetcher.config.check_crcs)
        if fetched.is_empty:
            return False
        session.answered(session.session_id)
        state.high_watermark = answer.high_watermark
        state.last_stable_offset = answer.last_stable_offset
        state.log_start_offset = answer.log_start_offset
        fetcher.deliver(fetched)
        self._ask_again(partition, state, template)
        return True

    def _find(self, name: bytes) -> tuple[TopicPartition, FetchTemplate] | None:
        """The partition that a plain answer names, and how to ask for more of it."""
        for partition, one in self.expected.items():
            topic_id = self._fetcher.topic_id(partition.topic)
            if row_name(topic_id, partition.partition) == name:
                request = self._fetcher.request_for(self, one.state)
                found = partition, FetchTemplate(self.version, self.connection.client_id, request)
                self._templates[name] = found
                return found
        return None

    def _ask_again(self, partition: TopicPartition, state: PartitionState, template: FetchTemplate) -> None:
        fetcher = self._fetcher
        offset = state.fetch_offset
        if (
            state.buffered >= MOST_BUFFERED
            or offset is None
            or fetcher.needs_refresh(monotonic_seconds() * 1000)
        ):
            fetcher.go_on(self)
            return
        self.session.moved(partition, offset)
        self.expected[partition] = Expected(state, state.generation, offset)
        request = template.request(self.session.epoch, offset)
        try:
            self.connection.send_made(self, ApiKey.FETCH, request, timeout_ms=fetcher.timeout_ms)
        except ClientError:
            fetcher.could_not_ask(self)
