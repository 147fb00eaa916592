# cython: annotation_typing=False
"""A partition with a replica on this broker: leader or follower, and the high watermark.

Compiled by Cython (partition.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

import cython

from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.metrics.counters import TopicTraffic
from odradek.records.batch import Buffer
from odradek.replication.errors import (
    FencedLeaderEpoch,
    LeaderEpochPending,
    NotAReplica,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    UnknownLeaderEpoch,
)
from odradek.replication.isr import (
    IsrChange,
    is_current_registration,
    largest_isr,
    out_of_sync,
    proposed_change,
    smallest_isr,
)
from odradek.replication.remote_replica import UNKNOWN_EPOCH, UNKNOWN_OFFSET, RemoteReplica

if cython.compiled:
    from cython.cimports.odradek.replication.watermark import high_watermark
else:
    from odradek.replication.watermark import high_watermark

ALL_IN_SYNC = -1
NO_LEADER = -1
NO_EPOCH = -1
# How many times the lag of followers is checked by their own fetches during `replica.lag.time.max.ms`.
LAG_CHECKS = 4


class LeaderAndIsrState(NamedTuple):
    """What the controller decided about a partition (LeaderAndIsr)."""

    leader_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    partition_epoch: int
    recovery_state: int = 0


class Progress(IntEnum):
    """What has happened to a partition when `on_progress` is called."""

    ANYTHING = 0
    """An append that is committed at once, another leader, ISR or state."""
    APPENDED = 1
    """The log end has moved, nothing else."""
    COMMITTED = 2
    """The high watermark has moved, nothing else."""


_UNKNOWN_LEADER_EPOCH = ErrorCode.UNKNOWN_LEADER_EPOCH
_ANYTHING, _APPENDED, _COMMITTED = Progress.ANYTHING, Progress.APPENDED, Progress.COMMITTED


class IsrPort(Protocol):
    """How a leader reaches the controller, and what it knows about other brokers."""

    max_lag_ms: int
    """`replica.lag.time.max.ms`."""

    def propose(self, partition: Partition, change: IsrChange) -> None:
        """Ask the controller for another ISR; the answer is `Partition.isr_changed` or `isr_refused`."""

    def registered_epoch(self, broker_id: int) -> int | None:
        """The broker epoch of a live broker, -1 if that is not known; None for a broker that is not alive."""


class Partition:
    """A partition that has a replica here. Owned by the replica manager, on the loop.

    `on_progress` is called after an append, and when the high watermark or the leader has changed; `progress`
    says which, while it is called.
    `is_sole_replica`: this broker leads, and there is no other replica to wait for.
    `followers`: what the leader knows of the other replicas by their fetches in this leader epoch.
    `pending`: an ISR that the controller was asked for and has not confirmed yet.
    `led_since`: the leader epoch in which this broker became the leader; it may have led in later ones since,
    without the log being truncated in between, so that an append of then is still there.
    `epoch_start_offset`: where the present leader epoch of this leader began.
    `is_suspended`: a new leader epoch is being written to the disk, and nothing is appended until it begins;
    requests of clients wait for that (`ReplicaManager.pending_epochs`).
    `awaits_flush`: `flush.messages` requires a sync before the last append may be answered or read.
    """

    __slots__ = (
        "_candidates",
        "_in_sync_followers",
        "_next_lag_check_ms",
        "_now_ms",
        "awaits_flush",
        "broker_id",
        "epoch_start_offset",
        "followers",
        "is_leader",
        "is_sole_replica",
        "is_suspended",
        "isr",
        "isr_port",
        "leader_epoch",
        "led_since",
        "log",
        "on_progress",
        "pending",
        "progress",
        "state",
        "sure_in_sync",
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
        isr_port: IsrPort | None = None,
    ) -> None:
        """Without an `isr_port` the ISR stays as the controller has set it."""
        self.topic_partition = topic_partition
        self.topic = topic_partition.topic
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = log
        self.on_progress = on_progress
        self.traffic = traffic or TopicTraffic()
        self.isr_port = isr_port
        self.state = LeaderAndIsrState(NO_LEADER, NO_EPOCH, (), (), -1)
        self.leader_epoch = NO_EPOCH
        self.led_since = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.pending: IsrChange | None = None
        self.progress: int = _ANYTHING
        self.sure_in_sync = 0
        self.is_leader = False
        self.is_sole_replica = False
        self.awaits_flush = False
        self.is_suspended = False
        self.epoch_start_offset = 0
        self.followers: dict[int, RemoteReplica] = {}
        self._in_sync_followers: list[RemoteReplica] = []
        self._candidates: list[RemoteReplica] = []
        self._now_ms = 0
        self._next_lag_check_ms = 0

    # Leader or follower

    def become(self, state: LeaderAndIsrState, now_ms: int = 0) -> bool:
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
        was_leader = self.is_leader
        self.is_leader = state.leader_id == self.broker_id
        if self.is_leader and not was_leader:
            self.led_since = state.leader_epoch
        self._now_ms = max(self._now_ms, now_ms)
        self.resume_appends()
        if not self.is_leader:
            self.followers = {}
        elif state.leader_epoch > was_leader_epoch:
            self.log.assign_leader_epoch(state.leader_epoch)
            self.epoch_start_offset = _start_of(self.log, state.leader_epoch)
            self.followers = {}
        self._keep_followers()
        self._set_isr(state.isr, None)
        self.awaits_flush = False
        if self.is_leader:
            self._advance()
        self.on_progress(self)
        return True

    def _keep_followers(self) -> None:
        """Know a follower for each replica of the state, and no other."""
        state, known = self.state, self.followers
        if not self.is_leader:
            return
        self.followers = {
            one: known.get(one) or RemoteReplica(one, self._now_ms if one in state.isr else 0)
            for one in state.replicas
            if one != self.broker_id
        }

    def _set_isr(self, isr: Sequence[int], pending: IsrChange | None) -> None:
        self.isr = tuple(isr)
        self.pending = pending
        self.sure_in_sync = len(smallest_isr(self.isr, pending))
        maybe_in_sync = largest_isr(self.isr, pending)
        self._in_sync_followers = [one for one in self.followers.values() if one.broker_id in maybe_in_sync]
        self._candidates = [one for one in self.followers.values() if one.broker_id not in maybe_in_sync]

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

    def require_epoch(self, client_leader_epoch: int) -> None:
        """Raise if the client knows another leader epoch: what a consumer needs to read from any replica."""
        if client_leader_epoch != NO_EPOCH and client_leader_epoch != self.leader_epoch:  # noqa: PLR1714
            self.require_leader(client_leader_epoch)

    # What a leader does

    def append(
        self,
        records: Buffer,
        required_acks: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Write batches as the leader. Nothing was written if it raises.

        `transaction_version` is that of a marker.
        """
        if not self.is_sole_replica:
            self._require_appendable(required_acks)
            self._now_ms = now_ms
        info = self.log.append_as_leader(records, self.leader_epoch, now_ms, origin, transaction_version)
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
            raise NotEnoughReplicas(self.topic_partition, self.sure_in_sync, self._min_in_sync())

    def record_follower_fetch(
        self,
        replica_id: int,
        fetch_offset: int,
        log_start_offset: int = UNKNOWN_OFFSET,
        now_ms: int = 0,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """A follower fetches from `fetch_offset`: it has everything before, which may now be committed.

        StaleBrokerEpoch for a fetch of an earlier registration of that broker.
        """
        follower = self.followers.get(replica_id)
        if follower is None:
            return
        if broker_epoch != UNKNOWN_EPOCH and broker_epoch < follower.broker_epoch:
            raise StaleBrokerEpoch(
                f"its broker epoch is {broker_epoch}, and it has fetched with {follower.broker_epoch}"
            )
        has_moved = follower.end_offset != fetch_offset
        has_deleted = follower.log_start_offset != log_start_offset
        follower.on_fetch(fetch_offset, log_start_offset, self.log.log_end_offset, now_ms, broker_epoch)
        self._now_ms = max(self._now_ms, now_ms)
        if now_ms >= self._next_lag_check_ms or fetch_offset < self.log.high_watermark:
            self.shrink_isr(now_ms)
        if self._candidates and self.pending is None and follower in self._candidates:
            self._expand_isr(follower)
        if has_deleted:
            self._advance()
            self.on_progress(self)
        elif has_moved and self._advance():
            self._report(_COMMITTED)

    def _report(self, progress: int) -> None:
        self.progress = progress
        try:
            self.on_progress(self)
        finally:
            self.progress = _ANYTHING

    def shrink_isr(self, now_ms: int) -> None:
        """Ask the controller to remove followers that are behind for more than `replica.lag.time.max.ms`."""
        port = self.isr_port
        if port is None or not self.is_leader:
            return
        self._now_ms = max(self._now_ms, now_ms)
        self._next_lag_check_ms = now_ms + port.max_lag_ms // LAG_CHECKS
        if self.pending is not None or self.is_suspended:
            return
        log = self.log
        slow = out_of_sync(
            self.followers.values(), self.isr, log.log_end_offset, log.high_watermark, now_ms, port.max_lag_ms
        )
        if slow:
            self._propose(port, tuple(one for one in self.isr if one not in slow))

    def _expand_isr(self, follower: RemoteReplica) -> None:
        """Ask the controller to add a follower, if it has caught up in its present registration."""
        port = self.isr_port
        if port is None or self.is_suspended:
            return
        if follower.may_join_isr(
            self.log.high_watermark, self.epoch_start_offset
        ) and is_current_registration(follower.broker_epoch, port.registered_epoch(follower.broker_id)):
            self._propose(port, (*self.isr, follower.broker_id))

    def _propose(self, port: IsrPort, isr: tuple[int, ...]) -> None:
        state = self.state
        change = proposed_change(
            isr,
            self.broker_id,
            self.followers,
            state.leader_epoch,
            state.partition_epoch,
            port.registered_epoch,
        )
        self._set_isr(self.isr, change)
        port.propose(self, change)

    def is_asking_for(self, change: IsrChange) -> bool:
        """Whether this is still the pending change of a leader."""
        return self.is_leader and self.pending is change

    def isr_changed(self, isr: tuple[int, ...], partition_epoch: int) -> bool:
        """The controller has confirmed an ISR of this leader epoch; False if it is an older one."""
        if partition_epoch < self.state.partition_epoch:
            return False
        self.state = self.state._replace(isr=isr, partition_epoch=partition_epoch)
        self._set_isr(isr, None)
        self._advance()
        self.on_progress(self)
        return True

    def isr_refused(self) -> None:
        """The controller has not applied the pending change and will not: the committed ISR stays."""
        self._set_isr(self.isr, None)
        self._advance()
        self.on_progress(self)

    def low_watermark(self, is_alive: Callable[[int], bool]) -> int:
        """The smallest log start offset of the leader and its live followers (DeleteRecords)."""
        starts = [one.log_start_offset for one in self.followers.values() if is_alive(one.broker_id)]
        return min(starts + [self.log.log_start_offset])  # noqa: RUF005 (Cython knows no star here)

    def require_replica(self, replica_id: int, client_leader_epoch: int) -> None:
        """Raise unless that broker has a replica; a newer assignment may not have arrived yet."""
        if replica_id in self.state.replicas:
            return
        names_epoch = client_leader_epoch != NO_EPOCH
        raise NotAReplica(
            f"the replicas of leader epoch {self.leader_epoch} are {list(self.state.replicas)}",
            error_code=_UNKNOWN_LEADER_EPOCH if names_epoch else None,
        )

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

    def has_enough_in_sync(self) -> bool:
        """Whether as many replicas are surely in sync as `min.insync.replicas` requires."""
        return self.is_sole_replica or self.sure_in_sync >= self._min_in_sync()

    def _min_in_sync(self) -> int:
        # A topic with fewer replicas than its min ISR would never accept anything.
        wanted, count = self.log.config.min_insync_replicas, len(self.followers) + 1
        return wanted if wanted < count else count  # noqa: FURB136 (two C integers)

    def _advance(self) -> bool:
        """Move the high watermark as far as replicas in sync and a due flush allow; whether it moved."""
        log = self.log
        self.awaits_flush = log.awaits_flush()
        end_offset = log.recovery_point if self.awaits_flush else log.log_end_offset
        if self.is_sole_replica:
            log.commit_to(end_offset)
            return True
        if self.sure_in_sync < self._min_in_sync():
            return False
        waits_for = self._in_sync_followers
        if self._candidates and self.isr_port is not None:
            waits_for = waits_for + self._about_to_join(self.isr_port, end_offset)
        current = log.high_watermark
        moved = high_watermark(end_offset, waits_for, current)
        if moved > current:
            log.update_high_watermark(moved)
            return True
        return False

    def _about_to_join(self, port: IsrPort, end_offset: int) -> list[RemoteReplica]:
        """The followers outside of the ISR that the high watermark waits for.

        Under constant load a leader that is alone in the ISR would otherwise move it so fast that no follower
        ever reaches it.
        """
        return [
            one
            for one in self._candidates
            if one.is_caught_up(end_offset, self._now_ms, port.max_lag_ms)
            and is_current_registration(one.broker_epoch, port.registered_epoch(one.broker_id))
        ]

    def on_brokers_changed(self) -> None:
        """A broker has come or gone: the high watermark need not wait for a replica of a dead one."""
        if self._candidates and self._advance():
            self.on_progress(self)

    # What a follower does

    def append_as_follower(self, records: Buffer, leader_epoch: int, now_ms: int) -> AppendInfo | None:
        """Append what the leader of this epoch has sent; None if there is no whole batch in it.

        NotLeaderOrFollower if the leader has changed since it was asked for.
        """
        self.require_following(leader_epoch)
        return self.log.append_as_follower(records, now_ms=now_ms)

    def require_following(self, leader_epoch: int) -> None:
        """Raise unless this broker follows a leader in this epoch."""
        if self.is_leader or self.is_suspended or leader_epoch != self.leader_epoch:
            raise NotLeaderOrFollower(self.topic_partition, self.state.leader_id, self.leader_epoch)

    def follow_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """Adopt the high watermark and the log start offset of the leader, as far as the log reaches.

        The high watermark never moves back: a new leader may still have an older one.
        """
        log = self.log
        has_moved = False
        if high_watermark > log.high_watermark:
            before = log.high_watermark
            has_moved = log.update_high_watermark(high_watermark) > before
        if log_start_offset > log.log_start_offset and log_start_offset <= log.high_watermark:
            log.advance_log_start(log_start_offset)
        if has_moved:
            self.on_progress(self)


def _start_of(log: PartitionLog, leader_epoch: int) -> int:
    """Where a leader epoch begins in the log; its end if it has no entry."""
    for entry in log.epochs:
        if entry.epoch == leader_epoch:
            return int(entry.start_offset)
    return log.log_end_offset
