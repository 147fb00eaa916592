# cython: annotation_typing=False
"""Fetch, API key 1: whole batches from partitions that this broker leads, straight from their files.

Versions 4-18.  4: isolation.  5: log start offset.  7: sessions (KIP-227).  9: leader epochs.  10: zstd.
11: rack.  12: flexible, diverging epochs.  13: topic ids.  15: replica state.  Consumers read up to the high
watermark or the last stable offset, followers up to the log end. From version 11 on consumers may read from
any replica (KIP-392); with `replica.selector.class` the leader names one in their rack.

Compiled by Cython (fetch.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

import cython

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.cooperative_yield import STEPS_PER_YIELD, CooperativeYield
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.fetch.fetch_sessions import FetchPartition, FetchSession, FetchSessionError, Key
from odradek.broker.requests.fetch.file_parts import LogPart
from odradek.broker.requests.waiting.purgatory import Waiter
from odradek.broker.security.acls import CLUSTER, Operation, Resource, ResourceType
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.errors import OffsetOutOfRange, StorageError
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.read_ahead import notice_cached, read_ahead
from odradek.log.partition.reading import BatchRun, Isolation
from odradek.net.send_queue import SMALL_FILE_BYTES
from odradek.protocol.api_key import ApiKey
from odradek.protocol.codec import new_struct
from odradek.protocol.messages import FetchRequest, FetchResponse
from odradek.protocol.structs import default_plan
from odradek.replication.errors import NotLeaderOrFollower, RefusedFollower
from odradek.replication.partition import Partition

if cython.compiled:
    from cython.cimports.odradek.log.partition.read_ahead import is_read_cached
    from cython.cimports.odradek.log.partition.reading import read_log
else:
    from odradek.log.partition.read_ahead import is_read_cached
    from odradek.log.partition.reading import read_log

logger = logging.getLogger(__name__)

Row = FetchResponse.Responses.Partitions
FetchResult = FetchResponse | None | Coroutine[Any, Any, FetchResponse | None]
UncachedRead = tuple[PartitionLog, int, int]
"""A log, where to read in it, and at most how many bytes."""

TOPIC_IDS_FROM = 13
REPLICA_STATE_FROM = 15
ANY_REPLICA_FROM = 11
READ_COMMITTED = 1

_RESPONSE = default_plan(FetchResponse)
_TOPIC = default_plan(FetchResponse, "responses")
_ROW = default_plan(FetchResponse, "responses", "partitions")
_STEPS_PER_YIELD = STEPS_PER_YIELD
_TOPIC_IDS_FROM, _REPLICA_STATE_FROM = TOPIC_IDS_FROM, REPLICA_STATE_FROM
_ANY_REPLICA_FROM = ANY_REPLICA_FROM
_SMALL_FILE_BYTES = SMALL_FILE_BYTES
_LOG_END, _UNCOMMITTED, _COMMITTED = Isolation.LOG_END, Isolation.HIGH_WATERMARK, Isolation.COMMITTED
_READ, _TOPIC_TYPE = Operation.READ, ResourceType.TOPIC


@handles(ApiKey.FETCH, versions=(4, 18))
def fetch(context: RequestContext, request: FetchRequest) -> FetchResult:
    """Respond at once if there is enough data or an error; otherwise wait for more.

    Data that may have to come from the disk is first read into the page cache by a thread.
    """
    services = context.services
    try:
        session, is_incremental = services.fetch_sessions.resolve(
            request, context.version >= _TOPIC_IDS_FROM, services.clock.now_ms()
        )
    except FetchSessionError as error:
        return FetchResponse(error_code=error.error_code)
    fetching = DelayedFetch(context, request, session, is_incremental)
    if not services.replicas.pending_epochs.is_empty and fetching.replica_id < 0:
        context.connection.pause()
        return fetching.answer_after_pending_epochs()
    if len(session.wanted) > _STEPS_PER_YIELD:
        return fetching.answer_with_yields()
    return fetching.answer_or_wait()


class DelayedFetch(Waiter):
    """One fetch request: read, wait and read again if necessary, respond.

    `replica_id`: the follower that fetches, -1 for a consumer. `replica_epoch`: its broker epoch.
    `rack_id`: the rack of a consumer that may be sent to another replica.
    """

    __slots__ = (
        "_allowed",
        "_leader_throttle",
        "_partitions",
        "_topic_names",
        "_uncached",
        "bytes_read",
        "context",
        "has_errors",
        "is_incremental",
        "isolation",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "rows",
        "services",
        "session",
        "throttled_bytes",
    )

    rows: list[tuple[Key, FetchPartition, Row]]

    def __init__(
        self,
        context: RequestContext,
        request: FetchRequest,
        session: FetchSession,
        is_incremental: bool,
    ) -> None:
        super().__init__(context.connection)
        services = context.services
        self.context = context
        self.services = services
        self.session = session
        self.is_incremental = is_incremental
        self.min_bytes = request.min_bytes
        self.max_bytes = min(request.max_bytes, services.fetch_max_bytes)
        self.max_wait_ms = request.max_wait_ms
        has_state = context.version >= _REPLICA_STATE_FROM
        self.replica_id = request.replica_state.replica_id if has_state else request.replica_id
        self.replica_epoch = request.replica_state.replica_epoch if has_state else -1
        self.rack_id = ""
        if services.select_replica is not None and self.replica_id < 0:
            self.rack_id = request.rack_id
        if self.replica_id >= 0:
            self.isolation = _LOG_END
        else:
            self.isolation = _COMMITTED if request.isolation_level == READ_COMMITTED else _UNCOMMITTED
        self._partitions: dict[Any, Partition] = services.replicas.partitions
        self._topic_names = services.replicas.topic_names
        self._allowed: dict[str, bool] = {}
        self._uncached: list[UncachedRead] | None = None
        throttle = services.leader_throttle if self.replica_id >= 0 else None
        self._leader_throttle = throttle if throttle is not None and throttle.is_on else None
        self._begin()

    def _begin(self) -> None:
        """Nothing is read yet."""
        self.rows = []
        self.bytes_read = 0
        self.throttled_bytes = 0
        self.has_errors = False

    def answer_or_wait(self) -> FetchResult:
        """The response if there is enough data; None if the fetch has to wait for more."""
        uncached: list[UncachedRead] = []
        self._uncached = uncached
        self.read()
        self._uncached = None
        if uncached:
            return self._read_ahead_and_answer(uncached)
        return self._answer_or_park()

    async def answer_after_pending_epochs(self) -> FetchResponse | None:
        """The same once no partition is about to be led by this broker in a new epoch.

        The client may know of the new epoch already, and would be refused until it is written.
        """
        pending_epochs = self.services.replicas.pending_epochs
        try:
            await pending_epochs.wait_until_written(self._partitions_by_name())
        finally:
            self.context.connection.resume()
        if len(self.session.wanted) > _STEPS_PER_YIELD:
            return await self.answer_with_yields()
        answer = self.answer_or_wait()
        return answer if answer is None or isinstance(answer, FetchResponse) else await answer

    def _partitions_by_name(self) -> list[TopicPartition]:
        """The partitions by their names; those of unknown topics are left out."""
        found = []
        for wanted in self.session.wanted.values():
            topic = self._topic_names.get(wanted.topic_id) if self.session.uses_topic_ids else wanted.topic
            if topic is not None:
                found.append(TopicPartition(topic, wanted.partition))
        return found

    async def _read_ahead_and_answer(self, uncached: list[UncachedRead]) -> FetchResponse | None:
        """Have a thread wait for the disk, then read what is in the page cache."""
        await self.services.loop.run_in_executor(self.services.pool, _read_all_ahead, uncached)
        if self.context.connection.is_closed:
            return None
        self.read()
        return self._answer_or_park()

    async def answer_with_yields(self) -> FetchResponse | None:
        """The same for very many partitions, serving other clients in between.

        A client that continues its session meanwhile may change the partitions.
        """
        yielding = CooperativeYield()
        items = list(self.session.wanted.items())
        uncached: list[UncachedRead] = []
        self._uncached = uncached
        async for key, wanted in yielding.over(items):
            self._read_one(key, wanted)
        self._uncached = None
        if uncached:
            await self.services.loop.run_in_executor(self.services.pool, _read_all_ahead, uncached)
            self._begin()
            async for key, wanted in yielding.over(items):
                self._read_one(key, wanted)
        if self.context.connection.is_closed:
            return None
        if not self.is_enough():
            # All are here, then, and no broker has very many; some may have got more since they were read.
            self.read()
            return self._answer_or_park()
        builder = FetchResponseBuilder(self)
        async for key, wanted, row in yielding.over(self.rows):
            builder.add(key, wanted, row)
        return builder.response()

    def _answer_or_park(self) -> FetchResponse | None:
        if self.is_enough():
            return self._response()
        services = self.services
        waiting = services.waiting_followers if self.replica_id >= 0 else services.waiting_fetches
        waiting.add(self, self._keys(), self.max_wait_ms)
        return None

    def read(self) -> None:
        """Look at every partition, in the session's order, until the response is full."""
        self._begin()
        for key, wanted in self.session.wanted.items():
            self._read_one(key, wanted)

    def is_enough(self) -> bool:
        """Whether the response should go out now."""
        return (
            self.has_errors
            or self.max_wait_ms <= 0
            or self.bytes_read >= self.min_bytes
            or not self.session.wanted
        )

    def try_complete(self) -> bool:
        """Read again after a wake-up, and respond if there is enough data now."""
        if self.context.connection.is_closed:
            return True
        self.read()
        if not self.is_enough():
            return False
        self.context.answer(self._response())
        return True

    def on_timeout(self) -> None:
        """The client has waited long enough."""
        if not self.context.connection.is_closed:
            self.read()
            self.context.answer(self._response())

    def _keys(self) -> tuple[Any, ...]:
        """The partitions to wait for."""
        keys = []
        for wanted in self.session.wanted.values():
            partition = wanted.replica
            if partition is not None:
                keys.append(partition.topic_partition)
        return tuple(keys)

    def _response(self) -> FetchResponse:
        builder = FetchResponseBuilder(self)
        for key, wanted, row in self.rows:
            builder.add(key, wanted, row)
        return builder.response()

    # Reading one partition

    def _read_one(self, key: Key, wanted: FetchPartition) -> None:
        row = new_struct(_ROW)
        row.partition_index = wanted.partition
        row.high_watermark = -1
        row.records = b""
        self.rows.append((key, wanted, row))
        topic = self._topic_names.get(wanted.topic_id) if self.session.uses_topic_ids else wanted.topic
        wanted.replica = None if topic is None else self._partitions.get((topic, wanted.partition))
        if topic is None:
            row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
        elif self.services.authorizer is not None and not self._is_allowed(topic):
            row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif wanted.replica is None:
            row.error_code = self.services.why_not_here(topic, wanted.partition)
        else:
            try:
                self._read_into(row, wanted.replica, wanted)
                return
            except KafkaError as error:
                self._report_error(row, topic, error)
        self.has_errors = True

    def _is_allowed(self, topic: str) -> bool:
        """Whether the client may read the topic; a follower needs to be a broker."""
        found = self._allowed.get(topic)
        if found is None:
            if self.replica_id >= 0:
                found = self.context.is_allowed(Operation.CLUSTER_ACTION, CLUSTER)
            else:
                found = self.context.is_allowed(_READ, Resource(_TOPIC_TYPE, topic))
            self._allowed[topic] = found
        return found

    def _read_into(self, row: Row, partition: Partition, wanted: FetchPartition) -> None:
        row.aborted_transactions = None
        if self.replica_id >= 0:
            partition.require_leader(wanted.current_leader_epoch)
            partition.require_replica(self.replica_id, wanted.current_leader_epoch)
        elif self.context.version >= _ANY_REPLICA_FROM:
            partition.require_epoch(wanted.current_leader_epoch)
            if self.rack_id and partition.is_leader and self._prefers_other_replica(row, partition, wanted):
                self.has_errors = True
                return
        else:
            partition.require_leader(wanted.current_leader_epoch)
        if wanted.last_fetched_epoch >= 0 and self._diverges(row, partition, wanted):
            self.has_errors = True
            return
        log, offset = partition.log, wanted.fetch_offset
        max_bytes = min(wanted.max_bytes, max(self.max_bytes - self.bytes_read, 0))
        throttle = self._leader_throttle
        is_throttled = throttle is not None and throttle.holds_for(partition, self.replica_id)
        is_held_back = False
        if throttle is not None and is_throttled and throttle.is_exceeded(self.services.clock.now_ms()):
            is_held_back, max_bytes = True, 0
        uncached = self._uncached
        if (
            uncached is not None
            and not is_held_back
            and not is_read_cached(log, offset, max_bytes)
            and not notice_cached(log, offset, max_bytes)
        ):
            uncached.append((log, offset, max_bytes))
            return
        # Only the first partition with data may pass the limits, else a response could have any size.
        fetched = read_log(log, offset, max_bytes, self.isolation, self.bytes_read == 0 and not is_held_back)
        if self.replica_id >= 0:
            partition.record_follower_fetch(
                self.replica_id,
                offset,
                wanted.follower_start_offset,
                self.services.clock.now_ms(),
                self.replica_epoch,
            )
        row.high_watermark = log.high_watermark
        row.last_stable_offset = log.stable_offset()
        row.log_start_offset = fetched.log_start_offset
        if fetched.run is not None:
            row.records = records = _records(fetched.run)
            self.bytes_read += len(records)
            if is_throttled:
                self.throttled_bytes += len(records)
        aborted = fetched.aborted
        if aborted is not None:
            row.aborted_transactions = (
                [
                    Row.AbortedTransactions(producer_id=one.producer_id, first_offset=one.first_offset)
                    for one in aborted
                ]
                if aborted
                else []
            )

    def _prefers_other_replica(self, row: Row, partition: Partition, wanted: FetchPartition) -> bool:
        """Whether the client should read from a follower in its rack; the response then names that one."""
        select = self.services.select_replica
        assert select is not None
        preferred = select(partition, self.rack_id, wanted.fetch_offset, self.context.listener)
        if preferred is None:
            return False
        log = partition.log
        row.preferred_read_replica = preferred
        row.high_watermark = log.high_watermark
        row.last_stable_offset = log.stable_offset()
        row.log_start_offset = log.log_start_offset
        return True

    def _diverges(self, row: Row, partition: Partition, wanted: FetchPartition) -> bool:
        """Whether the client's log differs from ours; the response then says from where on (KIP-595)."""
        log = partition.log
        epoch, offset = wanted.last_fetched_epoch, wanted.fetch_offset
        if epoch == log.epochs.latest and offset <= log.log_end_offset:
            return False
        end = log.end_offset_for_epoch(epoch)
        if end.epoch < 0:
            # An epoch that this log has not seen: there is no offset from which on the logs differ.
            raise OffsetOutOfRange(offset, log.log_start_offset, log.log_end_offset)
        if end.epoch == epoch and end.end_offset >= offset:
            return False
        row.diverging_epoch.epoch = end.epoch
        row.diverging_epoch.end_offset = end.end_offset
        row.high_watermark = log.high_watermark
        row.log_start_offset = log.log_start_offset
        return True

    def _report_error(self, row: Row, topic: str, error: KafkaError) -> None:
        row.error_code = error.error_code
        if isinstance(error, NotLeaderOrFollower):
            row.current_leader.leader_id = error.leader_id
            row.current_leader.leader_epoch = error.leader_epoch
        elif isinstance(error, StorageError):
            self.services.replicas.disk_failed(TopicPartition(topic, row.partition_index), error)
        elif isinstance(error, RefusedFollower):
            services = self.services
            if services.warnings.is_due((self.replica_id, error.error_code), services.clock.now_ms()):
                logger.warning(
                    "a fetch of broker %d from %s-%d is refused: %s",
                    self.replica_id,
                    topic,
                    row.partition_index,
                    error,
                )


class FetchResponseBuilder:
    """The rows of one response, by topic; in an incremental session only those that have changed."""

    __slots__ = ("_fetching", "_sent", "_topics")

    def __init__(self, fetching: DelayedFetch) -> None:
        self._fetching = fetching
        self._topics: dict[Any, FetchResponse.Responses] = {}
        self._sent: list[Key] = []

    def add(self, key: Key, wanted: FetchPartition, row: Row) -> None:
        """Add a partition, if it has data, an error or changed offsets."""
        if not wanted.has_changed(row) and self._fetching.is_incremental:
            return
        topic = self._topics.get(key[0])
        if topic is None:
            topic = new_struct(_TOPIC)
            topic.topic = wanted.topic
            topic.topic_id = wanted.topic_id
            self._topics[key[0]] = topic
        topic.partitions.append(row)
        size = len(row.records or b"")
        if size:
            self._sent.append(key)
            if wanted.replica is not None:
                wanted.replica.traffic.bytes_out += size

    def response(self) -> FetchResponse:
        """Build the response; partitions that returned data are last in the next one."""
        fetching = self._fetching
        session = fetching.session
        session.move_to_end(self._sent)
        throttle = fetching._leader_throttle
        if throttle is not None and fetching.throttled_bytes:
            throttle.sent(fetching.throttled_bytes, fetching.services.clock.now_ms())
        response = new_struct(_RESPONSE)
        response.session_id = session.session_id
        response.responses = list(self._topics.values())
        return response  # type: ignore[no-any-return]


def _records(run: BatchRun) -> Any:
    """The batches as bytes if they are few, else as a part of their file.

    A copy is cheaper than one more call and packet.
    """
    size = run.end - run.start
    if size > _SMALL_FILE_BYTES:
        return LogPart(run.range())
    try:
        records = run.segment.log.read(run.start, size)
    except OSError as error:
        raise StorageError(error, run.segment.log.path) from error
    # Shorter only if it is truncated at this moment; sending the part then fails.
    return records if len(records) == size else LogPart(run.range())


def _read_all_ahead(uncached: list[UncachedRead]) -> None:
    for log, offset, max_bytes in uncached:
        read_ahead(log, offset, max_bytes)
