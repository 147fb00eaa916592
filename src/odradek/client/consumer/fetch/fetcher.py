"""The fetcher: fetches from the leaders of all assigned partitions, ahead of the reader.

Everything here runs on one loop, like the producer's sender: `pump` does all that can be done now.
Each broker has at most one fetch in flight, on a connection of its own. Up to `MOST_BUFFERED` responses of
each partition are buffered for the reader.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import cast

from odradek.client.broker_errors import broker_error
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.errors import CorruptRecords
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.fetch_session import (
    FIRST_EPOCH,
    FetchSessionHandler,
    PartitionFetch,
    SessionRequest,
)
from odradek.client.consumer.fetch.fetched import Fetched
from odradek.client.consumer.fetch.repeat_fetch import ExpectedPartition, InFlightFetch
from odradek.client.consumer.fetch.truncation import LeaderEpochEnd, Validation
from odradek.client.consumer.first_contact import FirstContact
from odradek.client.consumer.positions import MOST_BUFFERED, PartitionPosition
from odradek.client.errors import BrokerError, ClientError
from odradek.client.metadata import Node
from odradek.client.network.background_tasks import BackgroundTasks
from odradek.client.network.brokers import STALE_METADATA_ERRORS, Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.errors import ProtocolError
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.records.errors import RecordsError

PURPOSE = "fetch"
HURRIED_WAIT_MS = 10
LAST_WITH_TOPIC_NAMES = 12
NO_TOPIC_ID = bytes(16)

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

_log = logging.getLogger("odradek.consumer")


class Fetcher:
    """Fetches for the partitions in `states`, a dictionary that its owner changes on the loop."""

    def __init__(
        self,
        config: ConsumerConfig,
        brokers: Brokers,
        states: dict[TopicPartition, PartitionPosition],
        fetch_buffer: FetchBuffer,
        *,
        reset: Callable[[PartitionPosition], None],
        truncated: Callable[[PartitionPosition, LeaderEpochEnd], None],
    ) -> None:
        self.config = config
        self.brokers = brokers
        self._states = states
        self.fetch_buffer = fetch_buffer
        self._fail = fetch_buffer.fail
        self._reset = reset
        self._validation = Validation(brokers, states, truncated=truncated, fail=fetch_buffer.fail)
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._fetching_from: set[int] = set()
        self.changes = 0
        """Incremented by each change after which a fetch in flight may be out of date."""
        # The broker may delay the response by fetch.max.wait.ms.
        self.timeout_ms = config.request_timeout_ms + config.fetch_max_wait_ms
        self._tasks = BackgroundTasks("fetcher", self._loop, self.pump)
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._contact = FirstContact("fetching", config.default_api_timeout_ms)

    def stop(self) -> None:
        """Stop fetching."""
        self._is_stopped = True
        self.changes += 1
        if self._timer is not None:
            self._timer.cancel()
        self._tasks.stop()

    def pump(self) -> None:
        """Send every fetch that can be sent now."""
        if self._is_stopped:
            return
        self.changes += 1
        now_ms = time.monotonic() * 1000
        by_node: dict[int, dict[TopicPartition, PartitionPosition]] = {}
        full: set[int] = set()
        for partition, state in self._states.items():
            if state.fetch_offset is None or state.is_paused or state.not_before_ms > now_ms:
                self._wake_for(state, now_ms)
                continue
            if state.is_fetched:
                continue
            node_id = self._node_for(state)
            if node_id is None:
                continue
            if state.buffered >= MOST_BUFFERED:
                full.add(node_id)
            else:
                by_node.setdefault(node_id, {})[partition] = state
        for node_id, states in by_node.items():
            if node_id not in self._fetching_from:
                self._fetch(node_id, states, is_hurried=node_id in full)
        if self.needs_refresh(now_ms) and self._states:
            self._tasks.begin("metadata", self._refresh)

    def needs_refresh(self, now_ms: float) -> bool:
        """Whether the metadata is known to be wrong, or old."""
        return self.brokers.metadata.needs_refresh(now_ms, self.config.metadata_max_age_ms)

    def _wake_for(self, state: PartitionPosition, now_ms: float) -> None:
        if state.not_before_ms > now_ms and self._timer is None:
            self._timer = self._loop.call_later((state.not_before_ms - now_ms) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.pump()

    def _node_for(self, state: PartitionPosition) -> int | None:
        """The broker to fetch from: the leader's preferred read replica, or the leader itself."""
        metadata = self.brokers.metadata
        view = metadata.leader(state.topic_partition)
        if view is not None and self._validation.is_due(state, view):
            self._tasks.begin("validation", self._validation.run)
            return None
        if state.preferred_replica is not None:
            if state.preferred_replica in metadata.nodes:
                return state.preferred_replica
            state.preferred_replica = None
        if view is None:
            metadata.mark_stale()
            return None
        return view.leader_id

    # One fetch.

    def _fetch(
        self, node_id: int, states: dict[TopicPartition, PartitionPosition], *, is_hurried: bool
    ) -> None:
        connection = self.brokers.open_connection(node_id, PURPOSE)
        if connection is None:
            self._tasks.begin(node_id, partial(self._connect, node_id))
            return
        version = connection.versions.best(ApiKey.FETCH)
        wanted = {partition: self._wanted(state) for partition, state in states.items()}
        if any(one.topic_id == NO_TOPIC_ID for one in wanted.values()):
            version = min(version, LAST_WITH_TOPIC_NAMES)
        session = self._sessions.setdefault(node_id, FetchSessionHandler())
        asked = session.next_request(wanted)
        expected = {
            partition: ExpectedPartition(state, cast("int", state.fetch_offset))
            for partition, state in states.items()
        }
        fetch = InFlightFetch(self, node_id, version, connection, session, expected, is_hurried=is_hurried)
        self._fetching_from.add(node_id)
        try:
            connection.send_for(
                fetch, self._request(asked, version, is_hurried), version, timeout_ms=self.timeout_ms
            )
        except ClientError:
            self._fetching_from.discard(node_id)
            session.restart(is_known=False)

    def lost(self, fetch: InFlightFetch) -> None:
        """The connection is closed."""
        self.on_response(fetch, None)

    def fetch_next(self, fetch: InFlightFetch) -> None:
        """The response is handled; send the next fetch."""
        self._fetching_from.discard(fetch.node_id)
        self.pump()

    def request_for(self, fetch: InFlightFetch, state: PartitionPosition) -> FetchRequest:
        """A request that names this partition only, within the session."""
        named = {state.topic_partition: self._wanted(state)}
        asked = SessionRequest(fetch.session.session_id, fetch.session.epoch, named, {})
        return self._request(asked, fetch.version, is_hurried=False)

    def topic_id(self, topic: str) -> bytes:
        """The topic id according to the metadata; zeroes if it is not known."""
        view = self.brokers.metadata.topics.get(topic)
        return view.topic_id if view is not None else NO_TOPIC_ID

    def _wanted(self, state: PartitionPosition) -> PartitionFetch:
        view = self.brokers.metadata.leader(state.topic_partition)
        return PartitionFetch(
            self.topic_id(state.topic),
            cast("int", state.fetch_offset),
            view.leader_epoch if view is not None else -1,
            self.config.max_partition_fetch_bytes,
        )

    def _request(self, asked: SessionRequest, version: int, is_hurried: bool) -> FetchRequest:
        config = self.config
        request = FetchRequest(
            replica_id=-1,
            max_wait_ms=min(config.fetch_max_wait_ms, HURRIED_WAIT_MS)
            if is_hurried
            else config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.reads_committed),
            session_id=asked.session_id,
            session_epoch=asked.epoch,
            rack_id=config.client_rack,
        )
        has_ids = version > LAST_WITH_TOPIC_NAMES
        topics: dict[str, FetchRequest.Topics] = {}
        for (topic, number), wanted in asked.named.items():
            row = FetchRequest.Topics.Partitions(
                partition=number,
                current_leader_epoch=wanted.leader_epoch,
                fetch_offset=wanted.fetch_offset,
                partition_max_bytes=wanted.max_bytes,
            )
            if topic not in topics:
                name = (
                    FetchRequest.Topics(topic_id=wanted.topic_id)
                    if has_ids
                    else FetchRequest.Topics(topic=topic)
                )
                topics[topic] = name
            topics[topic].partitions.append(row)
        request.topics = list(topics.values())
        request.forgotten_topics_data = _forgotten(asked, has_ids)
        return request

    def on_response(self, fetch: InFlightFetch, frame: memoryview | None) -> None:
        """Handle a response; None if the request has failed."""
        self._fetching_from.discard(fetch.node_id)
        self._contact.succeeded()
        if frame is None:
            fetch.session.restart(is_known=False)
            self.brokers.metadata.mark_stale()
        else:
            try:
                response = cast("FetchResponse", decode_response(ApiKey.FETCH, fetch.version, frame)[1])
                self._handle_response(fetch, response)
            except (ProtocolError, RecordsError) as problem:
                fetch.session.restart()
                self._fail(problem)
        self.pump()

    def _handle_response(self, fetch: InFlightFetch, response: FetchResponse) -> None:
        session, expected = fetch.session, fetch.expected
        if response.error_code != ErrorCode.NONE:
            is_within_session = session.epoch != FIRST_EPOCH
            session.restart(is_known=response.error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            # A session that is lost is replaced at once; one that cannot be opened, after a backoff.
            if response.error_code not in SESSION_ERRORS or not is_within_session:
                self._pause_all(expected, broker_error(response.error_code))
            return
        session.on_response(response.session_id)
        for endpoint in response.node_endpoints:
            self.brokers.metadata.add_node(
                Node(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
            )
        for topic in response.responses:
            name = topic.topic or self.brokers.metadata.names.get(topic.topic_id, "")
            for row in topic.partitions:
                one = expected.get(TopicPartition(name, row.partition_index))
                if one is not None and one.generation == one.state.generation:
                    self._handle_partition(one, row)

    def _handle_partition(self, one: ExpectedPartition, row: FetchResponse.Responses.Partitions) -> None:
        state = one.state
        if row.error_code != ErrorCode.NONE:
            self._handle_error(one, row)
            return
        state.high_watermark = row.high_watermark
        state.last_stable_offset = row.last_stable_offset
        state.log_start_offset = row.log_start_offset
        if row.preferred_read_replica >= 0:
            state.preferred_replica = row.preferred_read_replica
            return
        if not row.records:
            return
        aborted = None
        if self.config.reads_committed:
            aborted = [(entry.producer_id, entry.first_offset) for entry in row.aborted_transactions or ()]
        fetched = Fetched(
            state,
            one.offset,
            cast("memoryview", row.records),
            aborted=aborted,
            checks_crc=self.config.check_crcs,
        )
        if not fetched.is_empty:
            self.deliver(fetched)
        elif fetched.is_no_batch:
            state.not_before_ms = time.monotonic() * 1000 + self.config.retry_backoff_ms
            self._fail(CorruptRecords(state.topic_partition, one.offset, "these bytes are no batch"))

    def deliver(self, fetched: Fetched) -> None:
        """Pass fetched data to the buffer and advance the fetch offset."""
        fetched.mark_buffered()
        self.fetch_buffer.put(fetched)

    def _handle_error(self, one: ExpectedPartition, row: FetchResponse.Responses.Partitions) -> None:
        state, code = one.state, row.error_code
        leader = row.current_leader
        is_news = self.brokers.metadata.take_leader(
            state.topic_partition, leader.leader_id, leader.leader_epoch
        )
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.preferred_replica is not None:
                state.preferred_replica = None  # the leader may have records that its follower lacks
            else:
                self._reset(state)
            return
        error = broker_error(code, str(state.topic_partition))
        if code in STALE_METADATA_ERRORS and not is_news:
            self.brokers.metadata.mark_stale()
        if not is_news:
            state.not_before_ms = time.monotonic() * 1000 + self.config.retry_backoff_ms
        if not error.is_retriable:
            self._fail(error)

    def _pause_all(self, expected: dict[TopicPartition, ExpectedPartition], error: BrokerError) -> None:
        # One time for all, so that the next fetch names all of them.
        not_before_ms = time.monotonic() * 1000 + self.config.retry_backoff_ms
        for one in expected.values():
            one.state.not_before_ms = not_before_ms
        if not error.is_retriable:
            self._fail(error)

    # Tasks.

    async def _connect(self, node_id: int) -> None:
        try:
            await self.brokers.connection(node_id, PURPOSE)
        except ClientError as error:
            self._report_failure(error)
            self.brokers.metadata.mark_stale()
            await asyncio.sleep(self.config.reconnect_backoff_ms / 1000)

    async def _refresh(self) -> None:
        try:
            await self.brokers.refresh()
        except (ClientError, BrokerError) as error:
            self._report_failure(error)
            await asyncio.sleep(self.config.retry_backoff_ms / 1000)
            return
        if any(self.brokers.metadata.leader(partition) is None for partition in self._states):
            self.brokers.metadata.mark_stale()
            await asyncio.sleep(self.config.retry_backoff_ms / 1000)

    def _report_failure(self, error: BaseException) -> None:
        _log.debug("%s", error)
        # Without positions, their lookup reports errors.
        if any(state.fetch_offset is not None for state in self._states.values()):
            timed_out = self._contact.failed(error, time.monotonic() * 1000)
            if timed_out is not None:
                self._fail(timed_out)


def _forgotten(asked: SessionRequest, has_ids: bool) -> list[FetchRequest.ForgottenTopicsData]:
    topics: dict[str, FetchRequest.ForgottenTopicsData] = {}
    for (topic, number), topic_id in asked.forgotten.items():
        if topic not in topics:
            row = FetchRequest.ForgottenTopicsData
            topics[topic] = row(topic_id=topic_id) if has_ids else row(topic=topic)
        topics[topic].partitions.append(number)
    return list(topics.values())
