"""One partition over a real log: leader and follower states, appends, and the high watermark."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, PARTITION, a_batch, open_log
from odradek.broker.requests.waiting.purgatory import CommitPurgatory, CommitWait, CommitWaiter
from odradek.common.error_codes import ErrorCode
from odradek.log.config import LogConfig
from odradek.log.leader_epochs import EpochEntry
from odradek.metrics.counters import TopicTraffic
from odradek.replication.errors import (
    FencedLeaderEpoch,
    LeaderEpochPending,
    NotAReplica,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    UnknownLeaderEpoch,
)
from odradek.replication.isr import IsrChange
from odradek.replication.partition import ALL_IN_SYNC, NO_EPOCH, LeaderAndIsrState, Partition

OURS, FOLLOWER, OTHER_FOLLOWER = 0, 1, 2
REPLICAS = (OURS, FOLLOWER, OTHER_FOLLOWER)
TOPIC_ID = bytes(range(16))


class HostedPartition:
    """A partition with no state yet; `notified` counts the calls of `on_progress`."""

    def __init__(self, directory: Path, config: LogConfig) -> None:
        self.log = open_log(directory / "orders-0", config)
        self.notified = 0
        self.traffic = TopicTraffic()
        self.partition = Partition(
            PARTITION, TOPIC_ID, OURS, self.log, self._on_progress, traffic=self.traffic
        )

    def _on_progress(self, partition: Partition) -> None:
        assert partition is self.partition
        self.notified += 1

    def become(
        self,
        leader: int = OURS,
        epoch: int = 0,
        *,
        isr: tuple[int, ...] = REPLICAS,
        replicas: tuple[int, ...] = REPLICAS,
        partition_epoch: int = 0,
    ) -> bool:
        return self.partition.become(LeaderAndIsrState(leader, epoch, isr, replicas, partition_epoch))

    def append(self, count: int = 1, acks: int = 1) -> int:
        return self.partition.append(a_batch(count), acks, NOW_MS).base_offset


@pytest.fixture
def config() -> LogConfig:
    return LogConfig()


@pytest.fixture
def hosted(tmp_path: Path, config: LogConfig) -> Iterator[HostedPartition]:
    hosted = HostedPartition(tmp_path, config)
    yield hosted
    hosted.log.close(NOW_MS)


# Leader and follower


def test_a_new_partition_has_no_leader_and_refuses_appends(hosted: HostedPartition) -> None:
    with pytest.raises(NotLeaderOrFollower) as refused:
        hosted.append()
    assert (refused.value.leader_id, refused.value.leader_epoch) == (-1, -1)
    assert hosted.log.log_end_offset == 0


def test_each_leader_epoch_begins_at_the_log_end(hosted: HostedPartition) -> None:
    assert hosted.become(epoch=3)
    hosted.append(2)
    assert hosted.become(epoch=5)
    assert hosted.append() == 2

    assert list(hosted.log.epochs) == [EpochEntry(3, 0), EpochEntry(5, 2)]
    assert hosted.partition.leader_epoch == 5


def test_a_follower_names_the_leader_and_begins_no_epoch(hosted: HostedPartition) -> None:
    hosted.become()
    hosted.append()
    assert hosted.become(FOLLOWER, epoch=1)

    with pytest.raises(NotLeaderOrFollower) as refused:
        hosted.append()
    assert (refused.value.leader_id, refused.value.leader_epoch) == (FOLLOWER, 1)
    assert list(hosted.log.epochs) == [EpochEntry(0, 0)]


def test_a_leadership_spans_epochs_until_another_broker_leads(hosted: HostedPartition) -> None:
    hosted.become(epoch=3)
    hosted.become(epoch=5, isr=(OURS,))
    assert hosted.partition.led_since == 3

    hosted.become(FOLLOWER, epoch=6)
    hosted.become(epoch=7)
    assert hosted.partition.led_since == 7


async def _parked_append(hosted: HostedPartition, *states: tuple[int, int]) -> ErrorCode:
    """The outcome of an append of epoch 3, after these leaders and epochs and fetches by the followers."""
    waiting = CommitPurgatory(asyncio.get_running_loop())
    hosted.become(epoch=3)
    offset = hosted.append()
    waiter = RecordingWaiter(hosted.partition, offset)
    waiting.add(waiter, 60_000)
    for leader, epoch in states:
        hosted.become(leader, epoch)
    if hosted.partition.is_leader:
        for follower in (FOLLOWER, OTHER_FOLLOWER):
            hosted.partition.record_follower_fetch(follower, offset + 1)
    waiting.wake(hosted.partition)
    await asyncio.sleep(0)
    return waiter.error_code


class RecordingWaiter(CommitWaiter):
    def __init__(self, partition: Partition, offset: int) -> None:
        super().__init__()
        self.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        self.wait_for(partition, offset, partition.led_since)

    def on_outcome(self, wait: CommitWait, error_code: ErrorCode) -> None:
        self.error_code = error_code

    def on_complete(self) -> None:
        return None


def test_an_append_is_acknowledged_in_a_later_epoch_of_the_same_leadership(hosted: HostedPartition) -> None:
    assert asyncio.run(_parked_append(hosted, (OURS, 4))) == ErrorCode.NONE


def test_an_append_of_an_earlier_leadership_is_never_acknowledged(hosted: HostedPartition) -> None:
    lost = asyncio.run(_parked_append(hosted, (FOLLOWER, 4), (OURS, 5)))
    assert lost == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(5, 2), (5, 1), (4, 9)])
def test_a_state_that_is_not_newer_is_ignored(
    hosted: HostedPartition, epoch: int, partition_epoch: int
) -> None:
    hosted.become(epoch=5, partition_epoch=2)
    state, notified = hosted.partition.state, hosted.notified

    assert not hosted.become(FOLLOWER, epoch, partition_epoch=partition_epoch)

    assert hosted.partition.state == state
    assert hosted.partition.is_leader
    assert hosted.notified == notified


def test_a_stopped_replica_refuses_appends_and_notifies(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS,), replicas=(OURS,))
    notified = hosted.notified

    hosted.partition.stop()

    assert hosted.notified == notified + 1
    with pytest.raises(NotLeaderOrFollower):
        hosted.append()


@pytest.mark.parametrize("replicas", [(OURS,), REPLICAS])
def test_appends_are_refused_while_they_are_suspended(
    hosted: HostedPartition, replicas: tuple[int, ...]
) -> None:
    hosted.become(isr=replicas, replicas=replicas)
    hosted.append(3)

    assert hosted.partition.suspend_appends() == 3
    with pytest.raises(LeaderEpochPending):
        hosted.append()
    hosted.partition.resume_appends()

    assert hosted.append() == 3
    assert hosted.partition.is_sole_replica == (replicas == (OURS,))


# Leader epochs and replicas in requests


def test_a_client_with_another_leader_epoch_is_refused(hosted: HostedPartition) -> None:
    hosted.become(epoch=5)
    hosted.partition.require_leader()
    hosted.partition.require_leader(5)
    with pytest.raises(FencedLeaderEpoch):
        hosted.partition.require_leader(4)
    with pytest.raises(UnknownLeaderEpoch):
        hosted.partition.require_leader(6)


def test_a_follower_compares_the_epoch_before_it_names_the_leader(hosted: HostedPartition) -> None:
    hosted.become(FOLLOWER, epoch=5)
    with pytest.raises(FencedLeaderEpoch):
        hosted.partition.require_leader(4)
    with pytest.raises(NotLeaderOrFollower):
        hosted.partition.require_leader(5)


def test_only_assigned_replicas_may_fetch_as_followers(hosted: HostedPartition) -> None:
    hosted.become(replicas=(OURS, FOLLOWER))
    hosted.partition.require_replica(FOLLOWER, 0)
    with pytest.raises(NotAReplica) as refused:
        hosted.partition.require_replica(OTHER_FOLLOWER, 0)
    assert refused.value.error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert str(refused.value) == f"the replicas of leader epoch 0 are {[OURS, FOLLOWER]}"
    with pytest.raises(NotAReplica) as refused:
        hosted.partition.require_replica(OTHER_FOLLOWER, NO_EPOCH)
    assert refused.value.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


# Appends and the high watermark


def test_an_append_to_a_sole_replica_is_committed_at_once(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS,), replicas=(OURS,))
    notified = hosted.notified

    assert hosted.append(2, acks=ALL_IN_SYNC) == 0

    assert hosted.log.high_watermark == 2
    assert hosted.partition.is_committed(1)
    assert hosted.notified == notified + 1
    assert (hosted.traffic.messages_in, hosted.traffic.bytes_in) == (2, len(a_batch(2)))


def test_an_append_is_committed_when_the_whole_isr_has_fetched_it(hosted: HostedPartition) -> None:
    hosted.become()
    hosted.append(3)
    assert not hosted.partition.is_committed(0)

    hosted.partition.record_follower_fetch(FOLLOWER, 3)
    assert hosted.log.high_watermark == 0
    notified = hosted.notified
    hosted.partition.record_follower_fetch(OTHER_FOLLOWER, 2)

    assert hosted.log.high_watermark == 2
    assert hosted.notified == notified + 1
    assert hosted.partition.is_committed(1)
    assert not hosted.partition.is_committed(2)


def test_a_fetch_at_the_same_offset_notifies_nobody(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS, FOLLOWER), replicas=(OURS, FOLLOWER))
    hosted.append()
    hosted.partition.record_follower_fetch(FOLLOWER, 1)
    notified = hosted.notified

    hosted.partition.record_follower_fetch(FOLLOWER, 1)

    assert hosted.notified == notified


def test_a_smaller_isr_commits_what_the_removed_replica_lacks(hosted: HostedPartition) -> None:
    hosted.become()
    hosted.append(3)
    hosted.partition.record_follower_fetch(FOLLOWER, 3)
    assert hosted.log.high_watermark == 0

    hosted.become(isr=(OURS, FOLLOWER), partition_epoch=1)

    assert tuple(hosted.partition.isr) == (OURS, FOLLOWER)
    assert hosted.log.high_watermark == 3


def test_offsets_of_followers_do_not_outlive_their_leader_epoch(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS, FOLLOWER))
    hosted.partition.record_follower_fetch(FOLLOWER, 5)
    hosted.become(isr=(OURS, FOLLOWER), epoch=1)

    hosted.append(5)

    assert hosted.partition.followers[FOLLOWER].end_offset == -1
    assert hosted.log.high_watermark == 0


@pytest.mark.parametrize("config", [LogConfig(min_insync_replicas=2)])
def test_acks_all_needs_min_insync_replicas(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS,))

    with pytest.raises(NotEnoughReplicas) as refused:
        hosted.append(acks=ALL_IN_SYNC)
    assert (refused.value.in_sync, refused.value.needed) == (1, 2)
    assert hosted.append(acks=1) == 0
    assert hosted.log.high_watermark == 0

    hosted.become(isr=(OURS, FOLLOWER), partition_epoch=1)
    assert hosted.append(acks=ALL_IN_SYNC) == 1


@pytest.mark.parametrize("config", [LogConfig(min_insync_replicas=3)])
@pytest.mark.parametrize("replicas", [(OURS,), (OURS, FOLLOWER)])
def test_min_insync_replicas_is_at_most_the_number_of_replicas(
    hosted: HostedPartition, replicas: tuple[int, ...]
) -> None:
    hosted.become(isr=replicas, replicas=replicas)
    assert hosted.partition.has_enough_in_sync()
    assert hosted.append(acks=ALL_IN_SYNC) == 0


def test_a_repeated_batch_of_a_producer_is_not_counted_twice(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS,), replicas=(OURS,))
    for _ in range(2):
        batch = a_batch(2, producer_id=5, producer_epoch=0, base_sequence=0)
        assert hosted.partition.append(batch, 1, NOW_MS).base_offset == 0
    assert hosted.traffic.messages_in == 2


@pytest.mark.parametrize("config", [LogConfig(flush_messages=2)])
def test_an_append_that_awaits_a_flush_is_committed_by_it(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS,), replicas=(OURS,))
    hosted.append()
    assert hosted.partition.is_flushed(0)
    assert hosted.log.high_watermark == 1

    hosted.append(2)
    assert not hosted.partition.is_flushed(2)
    assert hosted.log.high_watermark == 1
    notified = hosted.notified
    hosted.log.flush(NOW_MS)
    hosted.partition.on_flushed()

    assert hosted.partition.is_flushed(2)
    assert hosted.log.high_watermark == 3
    assert hosted.notified == notified + 1


# In-sync replicas

LAG_MS = 30_000


class Controller:
    """Notes the changes that are proposed; `registered` are the epochs of live brokers."""

    max_lag_ms = LAG_MS

    def __init__(self) -> None:
        self.proposed: list[IsrChange] = []
        self.registered: dict[int, int] = dict.fromkeys(REPLICAS, -1)

    def propose(self, partition: Partition, change: IsrChange) -> None:
        self.proposed.append(change)

    def registered_epoch(self, broker_id: int) -> int | None:
        return self.registered.get(broker_id)


@pytest.fixture
def controller(hosted: HostedPartition) -> Controller:
    controller = Controller()
    hosted.partition = Partition(
        PARTITION, TOPIC_ID, OURS, hosted.log, hosted._on_progress, hosted.traffic, controller
    )
    return controller


def test_the_leader_asks_for_a_smaller_isr_and_keeps_the_old_one_until_it_is_confirmed(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=REPLICAS)
    hosted.append(3)
    hosted.partition.record_follower_fetch(FOLLOWER, 3, now_ms=LAG_MS + 1)

    (change,) = controller.proposed
    assert change.isr == (OURS, FOLLOWER)
    assert hosted.partition.isr == REPLICAS
    assert hosted.log.high_watermark == 0  # the larger set counts

    assert hosted.partition.isr_changed((OURS, FOLLOWER), partition_epoch=1)
    assert hosted.partition.isr == (OURS, FOLLOWER)
    assert hosted.partition.state.partition_epoch == 1
    assert hosted.log.high_watermark == 3


@pytest.mark.parametrize("config", [LogConfig(min_insync_replicas=3)])
def test_a_replica_that_may_leave_does_not_count_for_min_isr(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=REPLICAS)
    hosted.append()
    assert hosted.partition.has_enough_in_sync()

    hosted.partition.shrink_isr(LAG_MS + 1)

    with pytest.raises(NotEnoughReplicas):
        hosted.append(acks=ALL_IN_SYNC)
    hosted.partition.isr_refused()
    assert hosted.append(acks=ALL_IN_SYNC) == 1


@pytest.mark.parametrize("config", [LogConfig(min_insync_replicas=2)])
def test_the_high_watermark_stands_while_too_few_are_in_sync(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=(OURS,))
    hosted.append(2)
    assert hosted.log.high_watermark == 0
    hosted.partition.record_follower_fetch(FOLLOWER, 2, now_ms=1)
    assert controller.proposed[0].isr == (OURS, FOLLOWER)
    assert hosted.log.high_watermark == 0  # not confirmed yet
    hosted.partition.isr_changed((OURS, FOLLOWER), 1)
    assert hosted.log.high_watermark == 2


def test_a_follower_joins_when_it_has_caught_up(hosted: HostedPartition, controller: Controller) -> None:
    hosted.become(isr=(OURS,))
    hosted.append(3)
    assert hosted.log.high_watermark == 3
    hosted.partition.record_follower_fetch(FOLLOWER, 2, now_ms=1)
    assert controller.proposed == []

    hosted.partition.record_follower_fetch(FOLLOWER, 3, now_ms=2)
    assert [change.isr for change in controller.proposed] == [(OURS, FOLLOWER)]

    # It counts at once for the high watermark, and nothing else is asked meanwhile.
    hosted.append()
    hosted.partition.record_follower_fetch(OTHER_FOLLOWER, 4, now_ms=3)
    assert hosted.log.high_watermark == 3
    assert len(controller.proposed) == 1


def test_the_high_watermark_waits_for_a_follower_that_is_about_to_join(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=(OURS,))
    hosted.append(3)
    controller.registered[FOLLOWER] = 8
    hosted.partition.record_follower_fetch(FOLLOWER, 3, now_ms=NOW_MS, broker_epoch=8)
    hosted.partition.isr_refused()
    hosted.append(3)
    assert hosted.log.high_watermark == 3
    # Not if it has died.
    del controller.registered[FOLLOWER]
    hosted.partition.on_brokers_changed()
    assert hosted.log.high_watermark == 6


def test_a_replica_with_an_empty_disk_leaves_the_isr_at_its_first_fetch(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=(OURS, FOLLOWER))
    hosted.append(3)
    hosted.partition.record_follower_fetch(FOLLOWER, 3, now_ms=1, broker_epoch=7)
    assert hosted.log.high_watermark == 3

    hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=2, broker_epoch=8)

    assert [change.isr for change in controller.proposed] == [(OURS,)]


def test_a_fetch_of_an_earlier_registration_is_refused(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=(OURS,))
    hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=2, broker_epoch=8)
    with pytest.raises(StaleBrokerEpoch):
        hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=3, broker_epoch=7)


def test_a_follower_of_an_earlier_registration_does_not_join(
    hosted: HostedPartition, controller: Controller
) -> None:
    controller.registered[FOLLOWER] = 9
    hosted.become(isr=(OURS,))
    hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=2, broker_epoch=8)
    assert controller.proposed == []
    hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=3, broker_epoch=9)
    assert controller.proposed[0].broker_epochs == (-1, 9)


def test_a_newer_decision_of_the_controller_ends_a_pending_change(
    hosted: HostedPartition, controller: Controller
) -> None:
    hosted.become(isr=(OURS,))
    hosted.partition.record_follower_fetch(FOLLOWER, 0, now_ms=1)
    (change,) = controller.proposed
    assert hosted.partition.is_asking_for(change)

    hosted.become(isr=(OURS, OTHER_FOLLOWER), partition_epoch=3)

    assert not hosted.partition.is_asking_for(change)
    assert not hosted.partition.isr_changed((OURS, FOLLOWER), 2)
    assert hosted.partition.isr == (OURS, OTHER_FOLLOWER)


# Following


def test_a_follower_appends_in_the_epoch_of_its_leader_only(hosted: HostedPartition) -> None:
    hosted.become(FOLLOWER, epoch=4)
    hosted.partition.append_as_follower(a_batch(2, leader_epoch=4), 4, NOW_MS)
    with pytest.raises(NotLeaderOrFollower):
        hosted.partition.append_as_follower(a_batch(2, base_offset=2, leader_epoch=3), 3, NOW_MS)
    hosted.become(OURS, epoch=5)
    with pytest.raises(NotLeaderOrFollower):
        hosted.partition.append_as_follower(a_batch(2, base_offset=2, leader_epoch=4), 5, NOW_MS)
    assert hosted.log.log_end_offset == 2


def test_a_follower_adopts_the_leaders_offsets_as_far_as_its_log_reaches(hosted: HostedPartition) -> None:
    hosted.become(FOLLOWER)
    hosted.partition.append_as_follower(a_batch(5), 0, NOW_MS)
    notified = hosted.notified

    hosted.partition.follow_offsets(9, 2)
    assert (hosted.log.high_watermark, hosted.log.log_start_offset) == (5, 2)
    assert hosted.notified == notified + 1

    hosted.partition.follow_offsets(3, 1)
    assert (hosted.log.high_watermark, hosted.log.log_start_offset) == (5, 2)
    assert hosted.notified == notified + 1
