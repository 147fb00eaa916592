# cython: annotation_typing=False
"""A partition with a replica on this broker: leader or follower, and the high watermark.

Compiled by Cython (partition.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import cython

from odradek.common.ids import TopicPartition
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.metrics.counters import TopicTraffic
from odradek.records.batch import Buffer
from odradek.replication.errors import (
    FencedLeaderEpoch,
    LeaderEpochPending,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)

if cython.compiled:
    from cython.cimports.odradek.replication.watermark import high_watermark
else:
    from odradek.replication.watermark import high_watermark

ALL_IN_SYNC = -1
NO_LEADER = -1
NO_EPOCH = -1
NO_OFFSET = -1


class LeaderAndIsrState(NamedTuple):
    """What the controller decided about a partition (LeaderAndIsr)."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int


class Partition:
    """A partition that has a replica here. Owned by the replica manager, on the loop.

    `on_progress` is called after an append, and when the high watermark or the leader has changed.
    `is_sole_replica`: this broker leads, and there is no other replica to wait for.
    `end_offsets`: log end offsets of the replicas by their fetches in this leader epoch, this one included.
    `is_suspended`: a new leader epoch is being written to the disk, and appends are refused until it begins.
    `awaits_flush`: `flush.messages` requires a sync before the last append may be answered or read.
    """

    __slots__ = (
        "awaits_flush",
        "broker_id",
        "end_offsets",
        "is_leader",
        "is_sole_replica",
        "is_suspended",
        "isr",
        "leader_epoch",
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
        self.isr: tuple[int, ...] = ()
        self.is_leader = False
        self.is_sole_replica = False
        self.awaits_flush = False
        self.is_suspended = False
        self.end_offsets: dict[int, int] = {}

    def become(self, state: LeaderAndIsrState) -> bool:
        """Apply the controller's decision; False if it is not newer than the present state."""
        if (state.leader_epoch, state.partition_epoch) <= (
            self.state.leader_epoch,
            self.state.partition_epoch,
        ):
            self.resume_appends()
            return False
        was_leader_epoch = self.state.leader_epoch
        self.state = state
        self.leader_epoch = state.leader_epoch
        self.isr = tuple(state.isr)
        self.is_leader = state.leader_id == self.broker_id
        self.resume_appends()
        if self.is_leader and state.leader_epoch > was_leader_epoch:
            self.log.assign_leader_epoch(state.leader_epoch)
            self.end_offsets = {}
        self.awaits_flush = False
        if self.is_leader:
            self._advance()
        self.on_progress(self)
        return True

    def stop(self) -> None:
        """The replica is removed from this broker: refuse appends, and notify waiting requests."""
        self.is_leader = self.is_sole_replica = False
        self.on_progress(self)

    def suspend_appends(self) -> int:
        """Refuse appends until `become` or `resume_appends`; the log end, where the next epoch begins.

        The epoch is written to the disk in another thread meanwhile: a batch of the older epoch behind its
        start would look like one that was truncated.
        """
        self.is_suspended = True
        self.is_sole_replica = False
        return self.log.log_end_offset

    def resume_appends(self) -> None:
        """Accept appends again, in the epoch of `state`."""
        self.is_suspended = False
        self.is_sole_replica = self.is_leader and len(self.state.replicas) == 1

    def require_leader(self, client_leader_epoch: int = NO_EPOCH) -> None:
        """Raise unless this broker leads, in the epoch that the client knows (if it names one)."""
        leader_epoch = self.leader_epoch
        if client_leader_epoch not in (NO_EPOCH, leader_epoch):
            if client_leader_epoch < leader_epoch:
                raise FencedLeaderEpoch(f"epoch {client_leader_epoch} is over, {leader_epoch} has begun")
            raise UnknownLeaderEpoch(f"epoch {client_leader_epoch} is not known here yet")
        if not self.is_leader:
            raise NotLeaderOrFollower(self.topic_partition, self.state.leader_id, leader_epoch)

    def append(
        self, records: Buffer, required_acks: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> AppendInfo:
        """Write batches as the leader. Nothing was written if it raises."""
        if not self.is_sole_replica:
            self._require_appendable(required_acks)
        info = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin)
        self._advance()
        self.on_progress(self)
        if not info.is_duplicate:
            self.traffic.bytes_in += len(records)
            self.traffic.messages_in += info.last_offset - info.base_offset + 1
        return info

    def _require_appendable(self, required_acks: int) -> None:
        self.require_leader()
        if self.is_suspended:
            raise LeaderEpochPending(f"{self.topic_partition} begins a new leader epoch: try again")
        if required_acks == ALL_IN_SYNC and not self.has_enough_in_sync():
            raise NotEnoughReplicas(self.topic_partition, len(self.isr), self._min_in_sync())

    def record_follower_fetch(self, replica_id: int, fetch_offset: int) -> None:
        """A follower fetches from `fetch_offset`: it has everything before, which may now be committed."""
        if self.end_offsets.get(replica_id, NO_OFFSET) == fetch_offset:
            return
        self.end_offsets[replica_id] = fetch_offset
        if self._advance():
            self.on_progress(self)

    def require_replica(self, replica_id: int, client_leader_epoch: int) -> None:
        """Raise unless that broker has a replica; a newer assignment may not have arrived yet."""
        if replica_id in self.state.replicas:
            return
        if client_leader_epoch != NO_EPOCH:
            raise UnknownLeaderEpoch(f"broker {replica_id} is no replica in epoch {self.leader_epoch}")
        raise NotLeaderOrFollower(self.topic_partition, self.state.leader_id, self.leader_epoch)

    def is_committed(self, last_offset: int) -> bool:
        """Whether every replica in sync has the record at `last_offset`."""
        return self.log.high_watermark > last_offset

    def is_flushed(self, last_offset: int) -> bool:
        """Whether an append up to `last_offset` is synced, if `flush.messages` requires that."""
        return not self.awaits_flush or self.log.recovery_point > last_offset

    def on_flushed(self) -> None:
        """The recovery point of the log has moved: what waited for it may be committed and answered."""
        if self.is_leader:
            self._advance()
            self.on_progress(self)

    def in_sync_replicas(self) -> Sequence[int]:
        """The brokers that have everything that is committed."""
        return self.isr

    def has_enough_in_sync(self) -> bool:
        """Whether as many replicas are in sync as `min.insync.replicas` requires."""
        return self.is_sole_replica or len(self.isr) >= self._min_in_sync()

    def _min_in_sync(self) -> int:
        # A topic with fewer replicas than its min ISR would never accept anything.
        return min(self.log.config.min_insync_replicas, max(1, len(self.state.replicas)))

    def _advance(self) -> bool:
        """Move the high watermark as far as replicas in sync and a due flush allow; whether it moved."""
        log = self.log
        self.awaits_flush = log.awaits_flush()
        end_offset = log.recovery_point if self.awaits_flush else log.log_end_offset
        if self.is_sole_replica:
            log.commit_to(end_offset)
            return True
        self.end_offsets[self.broker_id] = end_offset
        current = log.high_watermark
        moved = high_watermark(self.end_offsets, self.isr, current, self._min_in_sync())
        if moved > current:
            log.update_high_watermark(moved)
            return True
        return False
