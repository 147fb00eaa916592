"""Writes the markers of transactions whose end was decided, by WriteTxnMarkers to the leaders.

One request at a time goes to each broker, with the markers of all transactions that wait for it. A partition
without a leader, or whose leader cannot write now, is tried again until it succeeds: a decided end is final.
Partitions that failed go in requests of their own, so that no others wait for them.
A deleted partition needs no marker, nor does one whose leader knows a newer producer epoch: an administrator
has ended the transaction there by hand. A newer coordinator epoch ends the attempts: another coordinator has
taken over.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.transactions.transaction import ProducerIdAndEpoch, Transaction

logger = logging.getLogger(__name__)

FIRST_RETRY_MS, LAST_RETRY_MS, LEADER_RETRY_MS = 10, 1000, 50
MARKERS_PER_REQUEST = 500

_WRITTEN = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)

_Marker = WriteTxnMarkersRequest.Markers


class Cluster(Protocol):
    """Who leads a partition, and how to reach that broker."""

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The broker id of the leader, -1 if there is none now; None if the partition is not known here."""
        ...

    async def is_deleted(self, partition: TopicPartition) -> bool:
        """Whether the partition does not exist; a broker that has just started knows no partition yet."""
        ...

    async def write_markers(
        self, broker_id: int, request: WriteTxnMarkersRequest, *, is_retry: bool
    ) -> WriteTxnMarkersResponse:
        """Send the request; OdradekError if there is no response. Retries do not hold up the others."""
        ...


class Lane(NamedTuple):
    """Requests to a broker that follow each other; partitions that failed have a lane of their own."""

    broker_id: int
    is_retry: bool


class MarkerKey(NamedTuple):
    """One decided end of a transaction."""

    transactional_id: str
    producer: ProducerIdAndEpoch


class PendingEnd:
    """A transaction with the partitions that still need its marker. Owned by its MarkerWriter."""

    __slots__ = ("coordinator_epoch", "key", "left", "on_written", "state_partition", "transaction")

    def __init__(
        self,
        transaction: Transaction,
        state_partition: int,
        coordinator_epoch: int,
        on_written: Callable[[], None],
    ) -> None:
        producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
        self.key = MarkerKey(transaction.transactional_id, producer)
        self.transaction = transaction
        self.state_partition = state_partition
        self.coordinator_epoch = coordinator_epoch
        self.on_written = on_written
        self.left: set[TopicPartition] = set(transaction.partitions)


class MarkerWriter:
    """The markers that this broker's coordinator has to write. Owned by the broker, on the loop."""

    def __init__(self, cluster: Cluster, start: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        """`start` runs a background task."""
        self._cluster = cluster
        self._start = start
        self._pending: dict[MarkerKey, PendingEnd] = {}
        # Partitions to be written, by the broker that leads them.
        self._queues: dict[Lane, dict[tuple[MarkerKey, TopicPartition], None]] = {}
        self._sending: set[Lane] = set()
        # Requests in a row that a broker did not fulfil.
        self._failures: dict[Lane, int] = {}
        # Partitions whose leader could not write the last marker.
        self._failed: set[TopicPartition] = set()

    def __len__(self) -> int:
        """Partitions that need a marker."""
        return sum(len(end.left) for end in self._pending.values())

    def write(self, end: PendingEnd) -> None:
        """Write the markers of a transaction, then call its `on_written`.

        It takes the place of the same end in an older coordinator epoch, never of one in a newer epoch.
        """
        known = self._pending.get(end.key)
        if known is not None and known.coordinator_epoch > end.coordinator_epoch:
            return
        self._pending[end.key] = end
        if end.left:
            self._queue((end.key, partition) for partition in end.left)
        else:
            self._complete(end)

    def drop(self, state_partition: int) -> None:
        """Stop writing markers for a partition of the coordinator's topic, which another broker leads."""
        for key in [key for key, end in self._pending.items() if end.state_partition == state_partition]:
            del self._pending[key]

    def leaders_changed(self, topics: Collection[str]) -> None:
        """What waits for former leaders of these topics' partitions goes to the new ones."""
        moved = []
        for lane, queue in self._queues.items():
            for key, partition in list(queue):
                if partition.topic in topics and self._cluster.leader_of(partition) != lane.broker_id:
                    del queue[key, partition]
                    moved.append((key, partition))
        if moved:
            self._queue(moved)

    def _queue(self, wanted: Iterable[tuple[MarkerKey, TopicPartition]]) -> None:
        later = []
        for key, partition in list(wanted):
            leader = self._cluster.leader_of(partition)
            if leader is None or leader < 0:
                later.append((key, partition))
            else:
                lane = Lane(leader, partition in self._failed)
                self._queues.setdefault(lane, {})[key, partition] = None
        if later:
            self._start(self._find_leaders(later))
        for lane in self._queues.keys() - self._sending:
            self._sending.add(lane)
            self._start(self._send_all(lane))

    async def _find_leaders(self, wanted: list[tuple[MarkerKey, TopicPartition]]) -> None:
        """Try again later, except for partitions that are deleted."""
        try:
            for key, partition in wanted:
                if self._cluster.leader_of(partition) is None and await self._cluster.is_deleted(partition):
                    logger.info("%s needs no marker in %s, which is deleted", key.transactional_id, partition)
                    self._done(key, partition)
        except Exception:  # a task root: no marker may be lost
            logger.exception("cannot find out which of %d partitions are deleted", len(wanted))
        await self._queue_later(wanted, LEADER_RETRY_MS)

    async def _queue_later(self, wanted: list[tuple[MarkerKey, TopicPartition]], delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)
        self._queue((key, partition) for key, partition in wanted if self._is_wanted(key, partition))

    def _is_wanted(self, key: MarkerKey, partition: TopicPartition) -> bool:
        end = self._pending.get(key)
        return end is not None and partition in end.left

    async def _send_all(self, lane: Lane) -> None:
        """Send until nothing is queued there."""
        try:
            while queue := self._queues.pop(lane, None):
                wanted = [one for one in queue if self._is_wanted(*one)]
                sent, rest = wanted[:MARKERS_PER_REQUEST], wanted[MARKERS_PER_REQUEST:]
                if rest:
                    self._queues[lane] = dict.fromkeys(rest)
                try:
                    retried = await self._send(lane, sent)
                except Exception:  # a task root: no marker may be lost
                    logger.exception("cannot write %d markers at broker %d", len(sent), lane.broker_id)
                    retried = sent
                if not retried:
                    self._failures.pop(lane, None)
                    continue
                failures = self._failures[lane] = self._failures.get(lane, 0) + 1
                delay_ms = min(FIRST_RETRY_MS << failures, LAST_RETRY_MS)
                self._start(self._queue_later(retried, delay_ms))
        finally:
            self._sending.discard(lane)

    async def _send(
        self, lane: Lane, wanted: list[tuple[MarkerKey, TopicPartition]]
    ) -> list[tuple[MarkerKey, TopicPartition]]:
        """Write these markers; the ones to be tried again."""
        if not wanted:
            return []
        asked = {key: self._pending[key] for key, _ in wanted}
        try:
            response = await self._cluster.write_markers(
                lane.broker_id, self._request(wanted), is_retry=lane.is_retry
            )
        except OdradekError as error:
            logger.warning("cannot write %d markers at broker %d: %s", len(wanted), lane.broker_id, error)
            return wanted
        codes = _codes_of(response)
        retried = []
        for key, partition in wanted:
            code = codes.get((key.producer.producer_id, partition), ErrorCode.UNKNOWN_SERVER_ERROR)
            if code in _WRITTEN:
                self._done(key, partition)
            elif code is ErrorCode.INVALID_PRODUCER_EPOCH:
                logger.warning(
                    "%s: %s is in a newer epoch, it needs no marker", key.transactional_id, partition
                )
                self._done(key, partition)
            elif code is ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                logger.warning("%s: %s refused the marker: %s", key.transactional_id, partition, code.name)
                if self._pending.get(key) is asked[key]:
                    del self._pending[key]
            else:
                self._failed.add(partition)
                retried.append((key, partition))
        return retried

    def _request(self, wanted: Iterable[tuple[MarkerKey, TopicPartition]]) -> WriteTxnMarkersRequest:
        by_end: dict[MarkerKey, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for key, (topic, partition) in wanted:
            by_end[key][topic].append(partition)
        return WriteTxnMarkersRequest(
            markers=[self._marker(self._pending[key], topics) for key, topics in by_end.items()]
        )

    def _marker(self, end: PendingEnd, topics: Mapping[str, list[int]]) -> _Marker:
        return _Marker(
            producer_id=end.key.producer.producer_id,
            producer_epoch=end.key.producer.producer_epoch,
            transaction_result=end.transaction.is_commit,
            coordinator_epoch=end.coordinator_epoch,
            transaction_version=end.transaction.client_version,
            topics=[_Marker.Topics(name=name, partition_indexes=indexes) for name, indexes in topics.items()],
        )

    def _done(self, key: MarkerKey, partition: TopicPartition) -> None:
        self._failed.discard(partition)
        end = self._pending.get(key)
        if end is not None:
            end.left.discard(partition)
            if not end.left:
                self._complete(end)

    def _complete(self, end: PendingEnd) -> None:
        del self._pending[end.key]
        end.on_written()


def _codes_of(response: WriteTxnMarkersResponse) -> dict[tuple[int, TopicPartition], ErrorCode]:
    return {
        (marker.producer_id, TopicPartition(topic.name, row.partition_index)): ErrorCode(row.error_code)
        for marker in response.markers
        for topic in marker.topics
        for row in topic.partitions
    }
