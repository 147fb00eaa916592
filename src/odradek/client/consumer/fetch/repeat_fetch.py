# cython: annotation_typing=False
"""The way of a fetch that finds all as it was: records of one partition come, and more of them are asked for.

A consumer that keeps up with its producers gets little at a time, and often; what it then asks is what it
asked before, but for an offset. So the request is made from a template, and the answer read without the
schema. All that is not as usual is left to the fetcher.

Compiled by Cython (steady_way.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import cython

from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.fetch_session import FetchSession
from odradek.client.consumer.fetch.fetched import Fetched
from odradek.client.consumer.positions import MOST_BUFFERED, PartitionPosition
from odradek.client.errors import ClientError
from odradek.client.network.brokers import Brokers
from odradek.client.network.connection import BrokerConnection
from odradek.client.network.in_flight import ResponseHandler
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

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

_LEND_AFTER = 3
"""So many answers in a row that the reader has waited for."""
_MOST_BYTES_ON_LOAN = 16 * 1024
"""More than this is better asked for and read while the reader is busy with what came before."""

_log = logging.getLogger("odradek.consumer")


class Fetching(Protocol):
    """What a fetch on its way needs of the fetcher."""

    config: ConsumerConfig
    brokers: Brokers
    inbox: FetchBuffer
    changes: int
    timeout_ms: int

    def needs_refresh(self, now_ms: float) -> bool:
        """Whether the metadata is known to be wrong, or old."""

    def topic_id(self, topic: str) -> bytes:
        """As the metadata tells."""

    def request_for(self, fetch: FetchOnItsWay, state: PartitionPosition) -> FetchRequest:
        """A request that names this partition only."""

    def deliver(self, fetched: Fetched) -> None:
        """Hand out what came."""

    def answered(self, fetch: FetchOnItsWay, frame: memoryview | None) -> None:
        """An answer that is not as usual came, or (None) never will."""

    def go_on(self, fetch: FetchOnItsWay) -> None:
        """All was taken, and something else is to be asked now."""

    def lost(self, fetch: FetchOnItsWay) -> None:
        """The connection is gone."""


class Expected:
    """One partition of a fetch that is on its way, as it was when that was sent."""

    __slots__ = ("generation", "offset", "state")

    def __init__(self, state: PartitionPosition, offset: int) -> None:
        self.state = state
        self.generation = state.generation
        self.offset = offset


class FetchOnItsWay(ResponseHandler):
    """A fetch that one broker has, and the steady ones that follow it; see `in_flight.Answer`.

    `changes` and `edition` are those of the fetcher and the metadata when it was made: as long as both stand,
    everything but what the answer tells is as it was.
    """

    __slots__ = (
        "_awaited",
        "_changes",
        "_checks_crc",
        "_edition",
        "_fetcher",
        "_inbox",
        "_is_steady",
        "_metadata",
        "_partition",
        "_template",
        "_templates",
        "_timeout_ms",
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
        self._inbox = fetcher.inbox
        self._awaited = 0
        self.node_id = node_id
        self.version = version
        self.connection = connection
        self.session = session
        self.expected = expected
        self._changes = fetcher.changes
        self._metadata = fetcher.brokers.metadata
        self._edition = self._metadata.edition
        self._checks_crc = fetcher.config.check_crcs
        self._timeout_ms = fetcher.timeout_ms
        self._templates: dict[bytes, tuple[TopicPartition, FetchTemplate]] = {}
        # One in a hurry is not to be repeated as it is.
        is_plain = FIRST_VERSION <= version <= LAST_VERSION and not fetcher.config.reads_committed
        self._is_steady = is_plain and not is_hurried

    def done(self) -> bool:
        """There is always somebody."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """The answer came."""
        is_awaited = self._inbox.is_awaited
        try:
            is_taken = self._take(frame, False)
        except Exception:
            _log.exception("a bug in the steady way of a fetch; it is asked anew")
            self._fetcher.answered(self, None)
            return
        if not is_taken:
            self._fetcher.answered(self, frame)
            return
        self._awaited = self._awaited + 1 if is_awaited and len(frame) <= _MOST_BYTES_ON_LOAN else 0
        if self._awaited >= _LEND_AFTER:
            self._inbox.lend(self.connection)

    def take(self, frame: memoryview) -> bool:
        """The answer came to the thread that polls, to which the connection is lent."""
        return len(frame) <= _MOST_BYTES_ON_LOAN and self._take(frame, True)

    def set_exception(self, error: BaseException, /) -> None:
        """It never will."""
        self._fetcher.answered(self, None)

    def exception(self) -> BaseException | None:
        """Nothing is kept here."""
        return None

    def _take(self, frame: memoryview, is_on_loan: bool) -> bool:
        """Deliver what came and ask for more; False, and nothing is done, if it is not as usual.

        Whatever raises, Ctrl-C too, does so before anything is delivered or after all is: from `count_in` on,
        and in `go_on` after the request is written, no Python code runs.
        """
        fetcher, session = self._fetcher, self.session
        if not self._is_steady or self._is_changed() or not session.session_id:
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
        fetched = Fetched(state, one.offset, answer.records, checks_crc=self._checks_crc)
        if fetched.is_empty:
            return False
        session.answered(session.session_id)
        state.high_watermark = answer.high_watermark
        state.last_stable_offset = answer.last_stable_offset
        state.log_start_offset = answer.log_start_offset
        self._partition, self._template = partition, template
        if is_on_loan:
            # The reader gets these records first, and more are asked for when it wants more.
            fetched.count_in()
            self._inbox.keep(fetched)
            assert self.connection.loan is not None
            self.connection.loan.put_off = self
        else:
            fetcher.deliver(fetched)
            self.go_on(False)
        return True

    def _is_changed(self) -> bool:
        """Whether something that the fetch depends on is not as it was when it was made."""
        return self._fetcher.changes != self._changes or self._metadata.edition != self._edition

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

    def go_on(self, is_on_loan: bool) -> None:
        """Ask for more of the partition that was answered last."""
        fetcher, partition = self._fetcher, self._partition
        state = self.expected[partition].state
        offset = state.fetch_offset
        if (
            state.buffered >= MOST_BUFFERED
            or offset is None
            or self._is_changed()
            or fetcher.needs_refresh(monotonic_seconds() * 1000)
        ):
            self._leave(fetcher.go_on, is_on_loan)
            return
        self.session.moved(partition, offset)
        self.expected[partition] = Expected(state, offset)
        request = self._template.request(self.session.epoch, offset)
        try:
            if is_on_loan:
                self.connection.send_on_loan(self, ApiKey.FETCH, request, self._timeout_ms)
            else:
                self.connection.send_made(self, ApiKey.FETCH, request, timeout_ms=self._timeout_ms)
        except ClientError:
            self._leave(fetcher.lost, is_on_loan)

    def _leave(self, step: Callable[[FetchOnItsWay], None], is_on_loan: bool) -> None:
        """Leave what is next to the fetcher, which works on its loop."""
        if is_on_loan:
            self.connection.call_on_loop(step, self)
        else:
            step(self)
