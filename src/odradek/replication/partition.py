# cython: annotation_typing=False
"""One partition as this broker has it: leader or follower, and what is committed.

Compiled by Cython (partition.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.common.ids import TopicPartition
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import FetchData, Isolation
from odradek.metrics.counters import TopicTraffic
from odradek.records.batch import Buffer
from odradek.replication.errors import (
    FencedLeaderEpoch,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from odradek.replication.watermark import high_watermark

ALL_IN_SYNC = -1
NO_LEADER = -1
NO_EPOCH = -1


class LeaderAndIsrState(NamedTuple):
    """What the controller decided about a partition (LeaderAndIsr)."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int


class Partition:
    """A partition that has a replica here. Owned by the replica manager, on the loop.

    `on_progress` is called when more can be read than before, or when the partition has changed hands.
    `leads_alone`: this broker leads, and there is no other replica to wait for.
    `awaits_flush`: `flush.messages` asks for a sync before the last append may be answered or read.
    """

    __slots__ = (
        "_end_offsets",
        "awaits_flush",
        "broker_id",
        "leader_epoch",
        "leads_alone",
        "log",
        "on_progress",
        "state",
        "topic",
        "topic_id",
        "topic_partition",
        "traffic",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        broker_id: int,
        log: PartitionLog,
        on_progress: Callable[[Partition], None],
        traffic: TopicTraffic | None = None,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic = topic_partition.topic
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = log
        self.on_progress = on_progress
        self.traffic = traffic or TopicTraffic()
        self.state = LeaderAndIsrState(NO_LEADER, NO_EPOCH, (), (), -1)
        self.leader_epoch = NO_EPOCH
        self.leads_alone = False
        self.awaits_flush = False
        self._end_offsets: dict[int, int] = {}

    @property
    def is_leader(self) -> bool:
        """Whether this broker leads."""
        return self.state.leader_id == self.broker_id

    def become(self, state: LeaderAndIsrState) -> bool:
        """Take over the controller's decision; False if it is not newer than what is known."""
        if (state.leader_epoch, state.partition_epoch) <= (
            self.state.leader_epoch,
            self.state.partition_epoch,
        ):
            return False
        was_leader_epoch = self.state.leader_epoch
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.leads_alone = self.is_leader and len(state.replicas) == 1
        if self.is_leader and state.leader_epoch > was_leader_epoch:
            self.log.assign_leader_epoch(state.leader_epoch)
            self._end_offsets = {}
        self.awaits_flush = False
        if self.is_leader:
            self._advance()
        self.on_progress(self)
        return True

    def require_leader(self, client_leader_epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client believes in (if it does in any)."""
        state = self.state
        if client_leader_epoch not in (NO_EPOCH, state.leader_epoch):
            if client_leader_epoch < state.leader_epoch:
                raise FencedLeaderEpoch(
                    f"epoch {client_leader_epoch} is over, {state.leader_epoch} has begun"
                )
            raise UnknownLeaderEpoch(f"epoch {client_leader_epoch} is not known here yet")
        if state.leader_id != self.broker_id:
            raise NotLeaderOrFollower(self.topic_partition, state.leader_id, state.leader_epoch)

    def append(
        self, records: Buffer, required_acks: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendInfo:
        """Write batches as the leader. Nothing was written if it raises."""
        state = self.state
        if not self.leads_alone:
            self._require_appendable(required_acks)
        if origin is Origin.CLIENT and isinstance(records, memoryview):
            info = self.log.append_from_client(records, state.leader_epoch, now_ms)
        else:
            info = self.log.append_as_leader(records, state.leader_epoch, now_ms=now_ms, origin=origin)
        self._appended(info, len(records))
        return info

    def append_alone(self, records: memoryview, now_ms: int) -> AppendInfo:
        """Like `append` of what a client sent, where `leads_alone`."""
        info = self.log.append_from_client(records, self.leader_epoch, now_ms)
        self._appended(info, len(records))
        return info

    def _appended(self, info: AppendInfo, size: int) -> None:
        self._advance()
        self.on_progress(self)
        if not info.is_duplicate:
            self.traffic.bytes_in += size
            self.traffic.messages_in += info.last_offset - info.base_offset + 1

    def _require_appendable(self, required_acks: int) -> None:
        self.require_leader()
        in_sync = len(self.state.isr)
        if required_acks == ALL_IN_SYNC and in_sync < self._min_in_sync():
            raise NotEnoughReplicas(self.topic_partition, in_sync, self._min_in_sync())

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation,
        client_leader_epoch: int = NO_EPOCH,
        min_one_batch: bool = True,
    ) -> FetchData:
        """Whole batches for a consumer."""
        self.require_leader(client_leader_epoch)
        return self.log.read(offset, max_bytes, isolation=isolation, min_one_batch=min_one_batch)

    def is_committed(self, last_offset: int) -> bool:
        """Whether every replica in sync has the record at `last_offset`."""
        return self.log.high_watermark > last_offset

    def may_acknowledge(self, last_offset: int, required_acks: int) -> bool:
        """Whether an append up to `last_offset` can be answered: synced where that is due, and with acks=all
        committed, which includes it.
        """
        if required_acks == ALL_IN_SYNC:
            return self.is_committed(last_offset)
        return not self.awaits_flush or self.log.recovery_point > last_offset

    def on_flushed(self) -> None:
        """The recovery point of the log has moved: what waited for it may be committed and answered."""
        if self.is_leader:
            self._advance()
            self.on_progress(self)

    def in_sync_replicas(self) -> Sequence[int]:
        """The brokers that have everything that is committed."""
        return self.state.isr

    def _min_in_sync(self) -> int:
        # A topic with fewer replicas than its min ISR would never take anything.
        return min(self.log.config.min_insync_replicas, max(1, len(self.state.replicas)))

    def _advance(self) -> None:
        """Move the high watermark as far as the replicas in sync, and a flush that is due, allow."""
        log = self.log
        self.awaits_flush = log.awaits_flush()
        end_offset = log.recovery_point if self.awaits_flush else log.log_end_offset
        if self.leads_alone:
            log.commit_to(end_offset)
            return
        self._end_offsets[self.broker_id] = end_offset
        current = self.log.high_watermark
        moved = high_watermark(self._end_offsets, self.state.isr, current, min_in_sync=self._min_in_sync())
        if moved > current:
            self.log.update_high_watermark(moved)
