"""One partition over a real log: leader and follower states, appends, and the high watermark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, PARTITION, a_batch, open_log
from odradek.log.config import LogConfig
from odradek.log.leader_epochs import EpochEntry
from odradek.metrics.counters import TopicTraffic
from odradek.replication.errors import (
    FencedLeaderEpoch,
    LeaderEpochPending,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
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
    with pytest.raises(UnknownLeaderEpoch):
        hosted.partition.require_replica(OTHER_FOLLOWER, 0)
    with pytest.raises(NotLeaderOrFollower):
        hosted.partition.require_replica(OTHER_FOLLOWER, NO_EPOCH)


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

    assert tuple(hosted.partition.in_sync_replicas()) == (OURS, FOLLOWER)
    assert hosted.log.high_watermark == 3


def test_offsets_of_followers_do_not_outlive_their_leader_epoch(hosted: HostedPartition) -> None:
    hosted.become(isr=(OURS, FOLLOWER))
    hosted.partition.record_follower_fetch(FOLLOWER, 5)
    hosted.become(isr=(OURS, FOLLOWER), epoch=1)

    hosted.append(5)

    assert hosted.partition.end_offsets == {OURS: 5}
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
