"""One loop that fetches partitions from one leader and appends what it sent.

| step | where |
| --- | --- |
| request | session (`fetch_session_handler.py`): only partitions that changed are named |
| error or diverging epoch | decided in `truncation.py`: truncate, restart, retry later |
| records | CRC checked, appended at the leader's offsets without a copy (`follower_batches.py`) |
| new leader epochs | written and synced by a thread before the first append of the epoch |
| offsets | high watermark and log start offset of the leader are adopted |
"""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.log.errors import LogError, StorageError, UnexpectedAppendOffset
from odradek.log.leader_epochs import EpochEnd, EpochEntry
from odradek.log.partition.follower_batches import FollowerBatches
from odradek.log.partition.partition_log import PartitionLog
from odradek.net.broker_connection import BrokerConnection, RequestFailed
from odradek.protocol.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from odradek.records.errors import RecordsError
from odradek.replication.errors import NotLeaderOrFollower
from odradek.replication.follower.fetch_session_handler import FetchRequestData, FetchSessionHandler, Key
from odradek.replication.follower.fetcher_context import FetcherContext, FollowedPartition
from odradek.replication.follower.truncation import (
    NOTHING_TO_CUT,
    AfterFetchError,
    after_fetch_error,
    after_out_of_range,
    first_truncation,
    retry_delay_ms,
    truncation_offset,
)

logger = logging.getLogger(__name__)

LATEST, EARLIEST = -1, -2
BYTES_PER_YIELD = 1 << 20
"""Appended before the loop serves clients again."""
THROTTLE_CHECK_MS = 500
MIN_PARKED_S = 0.01
MIN_BETWEEN_INTERRUPTIONS_S = 0.2

_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

Row = FetchResponse.Responses.Partitions
_Topic = FetchRequest.Topics
_PartitionRow = FetchRequest.Topics.Partitions
_Forgotten = FetchRequest.ForgottenTopicsData


class CheckedRecords(NamedTuple):
    """Batches that continue a log, and the leader epochs that begin in them."""

    followed: FollowedPartition
    row: Row
    found: FollowerBatches
    log: PartitionLog
    log_end_offset: int
    epochs: list[EpochEntry]

    def write_epochs(self) -> None:
        """Write the epochs to the disk, where blocking is allowed."""
        self.log.add_epochs(self.epochs, self.log_end_offset)

    @property
    def is_current(self) -> bool:
        """Whether the log is as it was when the batches were checked."""
        return self.followed.partition.log is self.log and self.log.log_end_offset == self.log_end_offset


class ReplicaFetcher:
    """Fetches partitions from one leader. Owned by the FetcherManager, on the broker's loop; one task."""

    def __init__(self, context: FetcherContext, leader_id: int, index: int) -> None:
        self.leader_id = leader_id
        self._context = context
        self.index = index
        self._session = FetchSessionHandler()
        self._followed: dict[Key, FollowedPartition] = {}
        self._delayed: dict[Key, FollowedPartition] = {}
        self._has_work = asyncio.Event()
        self._connection: BrokerConnection | None = None
        self._parked_since: float | None = None
        self._interrupted_at = 0.0
        self._interruption: asyncio.TimerHandle | None = None
        self._is_interrupted = False
        self._is_unreachable = False
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._followed)

    # Called by the manager

    def add(self, followed: FollowedPartition) -> None:
        """Fetch this partition too. Raises StorageError if its log cannot be truncated."""
        partition = followed.partition
        log = partition.log
        start = first_truncation(log.epochs.latest, log.log_end_offset, log.high_watermark)
        if start is not None:
            self._truncate(followed, start)
        self._followed[followed.key] = followed
        self._session.want(followed.key, followed.fetch_position())
        self._has_work.set()
        self._interrupt()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, key: Key) -> None:
        """Fetch this partition no more; what the leader has sent of it is dropped."""
        self._followed.pop(key, None)
        self._delayed.pop(key, None)
        self._session.forget(key)

    def end(self) -> None:
        """Fetch nothing more: what is in flight is dropped."""
        self._followed.clear()
        if self._interruption is not None:
            self._interruption.cancel()
        if self._task is not None:
            self._task.cancel()
        if self._parked_since is not None and self._connection is not None:
            # Another fetcher may need the connection; its requests must not wait behind ours.
            self._connection.disconnect("no partition is fetched any more")

    async def wait_until_ended(self) -> None:
        """Wait for what is being appended when `end` is called."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _interrupt(self) -> None:
        """Do not let a new partition wait until a fetch of others returns, which may take `wait_max_ms`."""
        if self._parked_since is None or self._connection is None or self._interruption is not None:
            return
        loop = asyncio.get_running_loop()
        at = max(self._parked_since + MIN_PARKED_S, self._interrupted_at + MIN_BETWEEN_INTERRUPTIONS_S)
        self._interruption = loop.call_at(at, self._interrupt_now)

    def _interrupt_now(self) -> None:
        self._interruption = None
        if self._parked_since is not None and self._connection is not None and self._session.has_changes:
            self._interrupted_at = asyncio.get_running_loop().time()
            self._is_interrupted = True
            self._connection.disconnect("another partition is to be fetched")

    # The loop

    async def _run(self) -> None:
        """Fetch until cancelled; a task root."""
        while True:
            try:
                await self._fetch_once()
            except Exception:  # a task root: the other partitions must not suffer
                logger.exception("A fetch from broker %d failed; trying again", self.leader_id)
                self._session.restart(is_known=True)
                await asyncio.sleep(self._context.settings.backoff_ms / 1000)

    async def _fetch_once(self) -> None:
        wait_ms = self._end_delays()
        if not self._session.wanted:
            await self._wait_for_work(wait_ms)
            return
        connection = self._connection = self._context.connect(self.leader_id, self.index)
        if connection is None:
            await asyncio.sleep(retry_delay_ms(1, self._context.settings.backoff_ms) / 1000)
            return
        asked = self._session.next()
        for key, fetch_position in asked.named.items():
            self._followed[key].asked = fetch_position
        loop = asyncio.get_running_loop()
        self._parked_since, self._is_interrupted = loop.time(), False
        try:
            timeout_s = self._context.settings.socket_timeout_ms / 1000
            response = await connection.send(self._request(asked, wait_ms), timeout_s=timeout_s)
        except RequestFailed as error:
            self._session.restart(is_known=True)
            if not self._is_interrupted:
                await self._pause_after(error)
            return
        finally:
            self._parked_since = None
        assert isinstance(response, FetchResponse)
        await self._on_response(connection, response)

    async def _pause_after(self, error: RequestFailed) -> None:
        """The leader cannot be reached; the connection itself waits longer with each attempt."""
        self._context.counters.failed_fetches += 1
        if not self._is_unreachable:
            self._is_unreachable = True
            logger.warning("Cannot fetch from broker %d: %s", self.leader_id, error)
        await asyncio.sleep(retry_delay_ms(1, self._context.settings.backoff_ms) / 1000)

    def _end_delays(self) -> float:
        """Ask again for partitions whose delay is over; ms until the next one is due."""
        wait_ms = float(self._context.settings.wait_max_ms)
        if self._delayed:
            now = asyncio.get_running_loop().time()
            for key, followed in list(self._delayed.items()):
                if followed.retry_at <= now and followed.is_throttled(self._context.broker_id):
                    followed.retry_at = now + self._throttled_ms(now * 1000) / 1000
                if followed.retry_at <= now:
                    del self._delayed[key]
                    self._session.want(key, followed.fetch_position())
                else:
                    wait_ms = min(wait_ms, (followed.retry_at - now) * 1000)
        return wait_ms

    async def _wait_for_work(self, wait_ms: float) -> None:
        self._has_work.clear()
        timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._has_work.set)
        try:
            await self._has_work.wait()
        finally:
            timer.cancel()

    def _request(self, asked: FetchRequestData, wait_ms: float) -> FetchRequest:
        settings = self._context.settings
        topics: dict[bytes, _Topic] = {}
        for (topic_id, index), wanted in asked.named.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = _Topic(topic_id=topic_id)
            topic.partitions.append(
                _PartitionRow(
                    partition=index,
                    current_leader_epoch=wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    last_fetched_epoch=wanted.last_fetched_epoch,
                    log_start_offset=wanted.log_start_offset,
                    partition_max_bytes=settings.max_bytes,
                )
            )
        forgotten: dict[bytes, _Forgotten] = {}
        for topic_id, index in asked.forgotten:
            forgotten.setdefault(topic_id, _Forgotten(topic_id=topic_id)).partitions.append(index)
        return FetchRequest(
            replica_state=FetchRequest.ReplicaState(
                replica_id=self._context.broker_id, replica_epoch=self._context.broker_epoch()
            ),
            max_wait_ms=max(int(wait_ms), 1),
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session_id=asked.session_id,
            session_epoch=asked.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=list(forgotten.values()),
        )

    # The answer

    async def _on_response(self, connection: BrokerConnection, response: FetchResponse) -> None:
        if response.error_code != ErrorCode.NONE:
            logger.info("Broker %d refused a fetch: %s", self.leader_id, ErrorCode(response.error_code).name)
            self._session.restart()
            if response.error_code not in _SESSION_ERRORS:
                await asyncio.sleep(retry_delay_ms(1, self._context.settings.backoff_ms) / 1000)
            return
        if self._is_unreachable:
            self._is_unreachable = False
            logger.info("Fetching from broker %d again", self.leader_id)
        self._session.answered(response.session_id)
        with_epochs: list[CheckedRecords] = []
        out_of_range: list[FollowedPartition] = []
        appended = 0
        for topic in response.responses:
            for row in topic.partitions:
                key = (topic.topic_id, row.partition_index)
                followed = self._followed.get(key)
                if followed is None or key in self._delayed:
                    continue  # removed, or delayed, since it was asked for
                if followed.asked != followed.fetch_position():
                    # Truncated since it was asked for; or a thread wrote epochs of batches that were then not
                    # appended, because a new leader epoch began meanwhile.
                    self._session.want(key, followed.fetch_position())
                    continue
                checked = self._take(followed, row, out_of_range)
                if checked is None:
                    if row.diverging_epoch.end_offset >= 0:
                        await asyncio.sleep(0)  # a truncation may block: clients do not wait for many
                    continue
                if checked.epochs:
                    with_epochs.append(checked)
                    continue
                self._append(checked)
                appended += len(checked.found.payload)
                if appended >= BYTES_PER_YIELD:
                    appended = 0
                    await asyncio.sleep(0)
        if with_epochs:
            await self._append_with_epochs(with_epochs)
        for followed in out_of_range:
            await self._find_range(connection, followed)

    def _take(
        self, followed: FollowedPartition, row: Row, out_of_range: list[FollowedPartition]
    ) -> CheckedRecords | None:
        """Handle the row of one partition; the batches to append, if there are any."""
        if row.error_code != ErrorCode.NONE:
            self._on_error(followed, ErrorCode(row.error_code), out_of_range)
            return None
        if row.diverging_epoch.end_offset >= 0:
            self._on_divergence(followed, EpochEnd(row.diverging_epoch.epoch, row.diverging_epoch.end_offset))
            return None
        followed.failures = 0
        followed.is_refused_inside = False
        log = followed.partition.log
        if not row.records:
            self._adopt_offsets(followed, row)
            return None
        try:
            found = self._check(followed, row.records)
        except StorageError as error:
            self._on_disk_error(followed, error)
            return None
        except (RecordsError, LogError) as error:
            self._context.counters.corrupt_batches += 1
            logger.error(
                "%s: what broker %d sent from offset %d on is not appended: %s",
                followed.partition.topic_partition,
                self.leader_id,
                log.log_end_offset,
                error,
            )
            self._delay(followed, self._context.settings.backoff_ms)
            return None
        return CheckedRecords(
            followed, row, found, log, log.log_end_offset, found.new_epochs(log.epochs.latest)
        )

    def _check(self, followed: FollowedPartition, records: memoryview) -> FollowerBatches:
        log = followed.partition.log
        try:
            return log.check_follower_batches(records)
        except UnexpectedAppendOffset as error:
            if log.log_start_offset == log.log_end_offset and error.last_offset >= log.log_end_offset:
                # The leader's log begins inside this batch, after DeleteRecords, and this log is empty.
                log.truncate_fully_and_start_at(
                    error.offset,
                    now_ms=self._context.clock.now_ms(),
                    log_start_offset=log.log_start_offset,
                )
                return log.check_follower_batches(records)
            raise

    async def _append_with_epochs(self, waiting: list[CheckedRecords]) -> None:
        """Append batches of new leader epochs, each after its epoch is on the disk."""
        written = await asyncio.gather(
            *(self._context.in_pool(one.write_epochs) for one in waiting), return_exceptions=True
        )
        for checked, outcome in zip(waiting, written, strict=True):
            if isinstance(outcome, StorageError):
                self._on_disk_error(checked.followed, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            elif self._followed.get(checked.followed.key) is checked.followed and checked.is_current:
                self._append(checked)

    def _append(self, checked: CheckedRecords) -> None:
        followed = checked.followed
        try:
            followed.partition.require_following(followed.leader_epoch)
            checked.log.append_follower_batches(checked.found, self._context.clock.now_ms())
        except NotLeaderOrFollower:
            return  # the manager is about to remove it
        except StorageError as error:
            self._on_disk_error(followed, error)
            return
        except LogError as error:
            logger.error("%s: cannot append: %s", followed.partition.topic_partition, error)
            self._delay(followed, self._context.settings.backoff_ms)
            return
        size = len(checked.found.payload)
        self._context.counters.fetched_bytes += size
        self._adopt_offsets(followed, checked.row)
        if followed.is_throttled(self._context.broker_id):
            now_ms = asyncio.get_running_loop().time() * 1000
            self._context.throttle.add(size, self._context.settings.throttled_rate, now_ms)
            self._delay(followed, self._throttled_ms(now_ms))

    def _throttled_ms(self, now_ms: float) -> int:
        """How long throttled partitions wait; checked again soon, as the rate may be changed meanwhile."""
        rate = self._context.settings.throttled_rate
        return min(self._context.throttle.wait_ms(rate, now_ms), THROTTLE_CHECK_MS)

    def _adopt_offsets(self, followed: FollowedPartition, row: Row) -> None:
        partition = followed.partition
        try:
            partition.follow_offsets(row.high_watermark, row.log_start_offset)
        except StorageError as error:
            self._on_disk_error(followed, error)
            return
        followed.lag = max(0, row.high_watermark - partition.log.log_end_offset)
        self._session.want(followed.key, followed.fetch_position())

    # What is not ordinary

    def _on_error(
        self, followed: FollowedPartition, error_code: ErrorCode, out_of_range: list[FollowedPartition]
    ) -> None:
        after = after_fetch_error(error_code)
        if after is AfterFetchError.ASK_FOR_RANGE:
            out_of_range.append(followed)
        elif after is AfterFetchError.STOP:
            # LeaderAndIsr with the newer epoch makes the manager add the partition again.
            logger.info("%s: epoch %d is over", followed.partition.topic_partition, followed.leader_epoch)
            self.remove(followed.key)
        else:
            logger.debug("%s: %s", followed.partition.topic_partition, error_code.name)
            self._delay_after_failure(followed)

    def _delay_after_failure(self, followed: FollowedPartition) -> None:
        """Ask for it later, the more so the more often that has failed in a row."""
        followed.failures += 1
        self._delay(followed, retry_delay_ms(followed.failures, self._context.settings.backoff_ms))

    def _delay(self, followed: FollowedPartition, delay_ms: int) -> None:
        """Leave a partition out of the fetches for a while."""
        followed.retry_at = asyncio.get_running_loop().time() + delay_ms / 1000
        self._session.forget(followed.key)
        self._delayed[followed.key] = followed

    def _on_divergence(self, followed: FollowedPartition, diverging: EpochEnd) -> None:
        log = followed.partition.log
        offset = truncation_offset(
            diverging, log.log_end_offset, log.high_watermark, log.end_offset_for_epoch
        )
        try:
            self._truncate(followed, offset)
        except StorageError as error:
            self._on_disk_error(followed, error)
            return
        self._session.want(followed.key, followed.fetch_position())

    def _truncate(self, followed: FollowedPartition, offset: int) -> None:
        log = followed.partition.log
        end_offset, high_watermark = log.log_end_offset, log.high_watermark
        if log.truncate_to(offset, now_ms=self._context.clock.now_ms()):
            self._note_truncation(followed, end_offset, high_watermark)

    def _note_truncation(self, followed: FollowedPartition, end_offset: int, high_watermark: int) -> None:
        log = followed.partition.log
        self._context.counters.truncations += 1
        self._context.on_truncated(log)
        below = " below the high watermark" if log.log_end_offset < high_watermark else ""
        logger.log(
            logging.WARNING if below else logging.INFO,
            "%s: truncated from offset %d to %d%s, to follow broker %d in epoch %d",
            followed.partition.topic_partition,
            end_offset,
            log.log_end_offset,
            below,
            self.leader_id,
            followed.leader_epoch,
        )

    async def _find_range(self, connection: BrokerConnection, followed: FollowedPartition) -> None:
        """The fetch offset is not in the leader's log: cut or drop our log as the leader's demands."""
        try:
            start = await self._leader_offset(connection, followed, EARLIEST)
            end = await self._leader_offset(connection, followed, LATEST)
        except (RequestFailed, KafkaError) as error:
            logger.info("%s: no offsets from the leader yet: %s", followed.partition.topic_partition, error)
            self._delay_after_failure(followed)
            return
        if self._followed.get(followed.key) is not followed:
            return
        log = followed.partition.log
        decided = after_out_of_range(log.log_end_offset, start, end)
        if decided == NOTHING_TO_CUT:
            self._on_refusal_inside(followed, start, end)
            return
        try:
            if decided.truncate_to is not None:
                self._truncate(followed, decided.truncate_to)
            elif decided.restart_at is not None:
                end_offset, high_watermark = log.log_end_offset, log.high_watermark
                now_ms = self._context.clock.now_ms()
                log.truncate_fully_and_start_at(decided.restart_at, now_ms=now_ms)
                self._note_truncation(followed, end_offset, high_watermark)
        except StorageError as error:
            self._on_disk_error(followed, error)
            return
        self._session.want(followed.key, followed.fetch_position())

    def _on_refusal_inside(self, followed: FollowedPartition, start: int, end: int) -> None:
        """The leader has the offset by now; or never, if it does not know our newest leader epoch."""
        if followed.failures and not followed.is_refused_inside:
            followed.is_refused_inside = True
            log = followed.partition.log
            logger.warning(
                "%s: broker %d refuses a fetch from offset %d, epoch %d, though its log goes from %d to %d. "
                "It may not know that epoch. It is asked again until it answers.",
                followed.partition.topic_partition,
                self.leader_id,
                log.log_end_offset,
                log.epochs.latest,
                start,
                end,
            )
        self._delay_after_failure(followed)

    async def _leader_offset(
        self, connection: BrokerConnection, followed: FollowedPartition, timestamp: int
    ) -> int:
        """Where the leader's log begins or ends; KafkaError if it does not say."""
        topic, index = followed.partition.topic_partition
        asked = ListOffsetsRequest.Topics.Partitions(
            partition_index=index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        response = await connection.send(
            ListOffsetsRequest(
                replica_id=self._context.broker_id,
                topics=[ListOffsetsRequest.Topics(name=topic, partitions=[asked])],
            ),
            timeout_s=self._context.settings.socket_timeout_ms / 1000,
        )
        assert isinstance(response, ListOffsetsResponse)
        row = response.topics[0].partitions[0]
        if row.error_code != ErrorCode.NONE:
            raise KafkaError("ListOffsets", error_code=ErrorCode(row.error_code))
        return int(row.offset)

    def _on_disk_error(self, followed: FollowedPartition, error: StorageError) -> None:
        if error.is_no_space:
            self._delay(followed, self._context.settings.backoff_ms)
        else:
            self.remove(followed.key)
        self._context.on_disk_error(followed.partition.topic_partition, error)
