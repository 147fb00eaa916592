# cython: annotation_typing=False
"""Fetches that repeat the previous one: after records of one partition, the next ones are requested.

A consumer that keeps up with its producers gets small responses often, and its requests differ only in the
fetch offset. So the request is made from a template, and the response is decoded without the schema.
All other responses are passed to the fetcher.

Compiled by Cython (repeat_fetch.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import cython

from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.fetch_session import FetchSessionHandler
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

_DIRECT_READ_AFTER = 3
"""Direct reading starts after so many responses in a row that a poll has waited for."""
_MAX_DIRECT_READ_BYTES = 16 * 1024
"""Larger responses are read ahead by the loop, while the application handles records."""

_log = logging.getLogger("odradek.consumer")


class Fetching(Protocol):
    """What a fetch needs of the fetcher."""

    config: ConsumerConfig
    brokers: Brokers
    fetch_buffer: FetchBuffer
    changes: int
    timeout_ms: int

    def needs_refresh(self, now_ms: float) -> bool:
        """Whether the metadata is known to be wrong, or old."""

    def topic_id(self, topic: str) -> bytes:
        """The topic id according to the metadata."""

    def request_for(self, fetch: InFlightFetch, state: PartitionPosition) -> FetchRequest:
        """A request that names this partition only."""

    def deliver(self, fetched: Fetched) -> None:
        """Pass fetched data to the buffer."""

    def on_response(self, fetch: InFlightFetch, frame: memoryview | None) -> None:
        """Handle a response that is not ordinary; None if the request has failed."""

    def fetch_next(self, fetch: InFlightFetch) -> None:
        """The response is handled, and the next fetch is not a repeated one."""

    def lost(self, fetch: InFlightFetch) -> None:
        """The connection is closed."""


class ExpectedPartition:
    """One partition of a fetch in flight, as it was when the request was sent."""

    __slots__ = ("generation", "offset", "state")

    def __init__(self, state: PartitionPosition, offset: int) -> None:
        self.state = state
        self.generation = state.generation
        self.offset = offset


class InFlightFetch(ResponseHandler):
    """A fetch that is in flight, and the ones that repeat it; see `in_flight.ResponseHandler`.

    `changes` and `edition` are those of the fetcher and the metadata when it was made: as long as both are
    the same, the fetch may be repeated.
    """

    __slots__ = (
        "_awaited_in_a_row",
        "_changes",
        "_checks_crc",
        "_edition",
        "_fetch_buffer",
        "_fetcher",
        "_is_repeatable",
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
        session: FetchSessionHandler,
        expected: dict[TopicPartition, ExpectedPartition],
        *,
        is_hurried: bool,
    ) -> None:
        self._fetcher = fetcher
        self._fetch_buffer = fetcher.fetch_buffer
        self._awaited_in_a_row = 0
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
        # A hurried fetch has a shorter wait, and is not repeated.
        is_plain = FIRST_VERSION <= version <= LAST_VERSION and not fetcher.config.reads_committed
        self._is_repeatable = is_plain and not is_hurried

    def done(self) -> bool:
        """Never: the fetcher always waits for it."""
        return False

    def set_result(self, frame: memoryview, /) -> None:
        """On the loop: the response arrived."""
        is_awaited = self._fetch_buffer.is_awaited
        try:
            is_handled = self._handle(frame, False)
        except Exception:
            _log.exception("bug in a repeated fetch; it is sent again")
            self._fetcher.on_response(self, None)
            return
        if not is_handled:
            self._fetcher.on_response(self, frame)
            return
        self._awaited_in_a_row = (
            self._awaited_in_a_row + 1 if is_awaited and len(frame) <= _MAX_DIRECT_READ_BYTES else 0
        )
        if self._awaited_in_a_row >= _DIRECT_READ_AFTER:
            self._fetch_buffer.start_direct_read(self.connection)

    def handle(self, frame: memoryview) -> bool:
        """On the polling thread, which reads directly: the response arrived."""
        return len(frame) <= _MAX_DIRECT_READ_BYTES and self._handle(frame, True)

    def set_exception(self, error: BaseException, /) -> None:
        """The request failed."""
        self._fetcher.on_response(self, None)

    def exception(self) -> BaseException | None:
        """Not kept."""
        return None

    def _handle(self, frame: memoryview, is_direct: bool) -> bool:
        """Deliver the records and send the next fetch; False, without any effect, if it is not ordinary.

        Errors, also KeyboardInterrupt, are raised before anything is delivered or after everything is: no
        Python code runs after `mark_buffered`, nor in `run_deferred` after the request is written.
        """
        fetcher, session = self._fetcher, self.session
        if not self._is_repeatable or self._is_changed() or not session.session_id:
            return False
        response = read_plain_fetch(frame, session.session_id)
        if response is None:
            return False
        known = self._templates.get(response.name) or self._find(response.name)
        if known is None:
            return False
        partition, template = known
        one = self.expected[partition]
        state = one.state
        if one.generation != state.generation:
            return False
        fetched = Fetched(state, one.offset, response.records, checks_crc=self._checks_crc)
        if fetched.is_empty:
            return False
        session.on_response(session.session_id)
        state.high_watermark = response.high_watermark
        state.last_stable_offset = response.last_stable_offset
        state.log_start_offset = response.log_start_offset
        self._partition, self._template = partition, template
        if is_direct:
            # The poll returns these records first; the next fetch is sent by the next poll.
            fetched.mark_buffered()
            self._fetch_buffer.keep(fetched)
            assert self.connection.direct_read is not None
            self.connection.direct_read.deferred = self
        else:
            fetcher.deliver(fetched)
            self.run_deferred(False)
        return True

    def _is_changed(self) -> bool:
        """Whether something that the fetch depends on has changed since it was made."""
        return self._fetcher.changes != self._changes or self._metadata.edition != self._edition

    def _find(self, name: bytes) -> tuple[TopicPartition, FetchTemplate] | None:
        """The partition that a plain response names, and the template of its next fetch."""
        for partition, one in self.expected.items():
            topic_id = self._fetcher.topic_id(partition.topic)
            if row_name(topic_id, partition.partition) == name:
                request = self._fetcher.request_for(self, one.state)
                found = partition, FetchTemplate(self.version, self.connection.client_id, request)
                self._templates[name] = found
                return found
        return None

    def run_deferred(self, is_direct: bool) -> None:
        """Send the next fetch of the partition whose records came last."""
        fetcher, partition = self._fetcher, self._partition
        state = self.expected[partition].state
        offset = state.fetch_offset
        if (
            state.buffered >= MOST_BUFFERED
            or offset is None
            or state.is_fetched
            or self._is_changed()
            or fetcher.needs_refresh(monotonic_seconds() * 1000)
        ):
            self._call_fetcher(fetcher.fetch_next, is_direct)
            return
        self.session.update_offset(partition, offset)
        self.expected[partition] = ExpectedPartition(state, offset)
        request = self._template.request(self.session.epoch, offset)
        try:
            if is_direct:
                self.connection.send_directly(self, ApiKey.FETCH, request, self._timeout_ms)
            else:
                self.connection.send_encoded(self, ApiKey.FETCH, request, timeout_ms=self._timeout_ms)
        except ClientError:
            self._call_fetcher(fetcher.lost, is_direct)

    def _call_fetcher(self, step: Callable[[InFlightFetch], None], is_direct: bool) -> None:
        """Call the fetcher, on its loop."""
        if is_direct:
            self.connection.call_on_loop(step, self)
        else:
            step(self)
