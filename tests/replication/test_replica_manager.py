"""Replicas made, adopted and handed from one leader epoch to the next, over real logs."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from broker.wire import a_batch
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.log.errors import StorageError
from odradek.log.leader_epochs import EpochEntry
from odradek.replication.errors import LeaderEpochPending
from odradek.replication.partition import LeaderAndIsrState, Partition
from odradek.replication.replica_manager import ReplicaManager, ReplicaSetup
from odradek.testing.faulty_files import FaultyFiles

BROKER_ID = 0
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=7).bytes


def led_in(leader_epoch: int, replicas: tuple[int, ...] = (BROKER_ID,)) -> LeaderAndIsrState:
    return LeaderAndIsrState(BROKER_ID, leader_epoch, (BROKER_ID,), replicas, partition_epoch=leader_epoch)


class Given:
    def __init__(self, directory: Path) -> None:
        self.files = FaultyFiles()
        self.logs = LogManager([str(directory)], broker_id=BROKER_ID, cluster_id="test", files=self.files)
        self.logs.start(0, lambda topic: LogConfig())
        self.replicas = ReplicaManager(BROKER_ID, self.logs, lambda partition: None)

    def host(self, state: LeaderAndIsrState) -> Partition:
        return self.replicas.host(ORDERS, TOPIC_ID, state, LogConfig(), now_ms=0)

    def begin(self, state: LeaderAndIsrState) -> ReplicaSetup:
        return self.replicas.begin_setup(ORDERS, TOPIC_ID, state, LogConfig(), now_ms=0)


@pytest.fixture
def given(tmp_path: Path) -> Iterator[Given]:
    given = Given(tmp_path)
    yield given
    given.logs.abandon()


def append(partition: Partition) -> int:
    return partition.append(memoryview(bytearray(a_batch(b"x", timestamp_ms=0))), 1, 0).base_offset


@pytest.mark.parametrize("replicas", [(BROKER_ID,), (BROKER_ID, 1)])
def test_nothing_is_appended_in_the_old_epoch_behind_the_start_of_the_new_one(
    given: Given, replicas: tuple[int, ...]
) -> None:
    partition = given.host(led_in(0, replicas))
    assert append(partition) == 0

    setup = given.begin(led_in(5, replicas))
    with pytest.raises(LeaderEpochPending):
        append(partition)
    assert setup.blocks
    setup.run()
    with pytest.raises(LeaderEpochPending):
        append(partition)
    given.replicas.complete_setup(setup)

    assert append(partition) == 1
    assert list(partition.log.epochs) == [EpochEntry(0, 0), EpochEntry(5, 1)]
    assert partition.log.end_offset_for_epoch(0) == (0, 1)


def test_a_state_of_the_same_epoch_needs_nothing_on_the_disk(given: Given) -> None:
    partition = given.host(led_in(3))

    setup = given.begin(led_in(3)._replace(partition_epoch=9))

    assert not setup.blocks
    assert append(partition) == 0


def test_a_full_disk_leaves_the_old_epoch_in_force(given: Given) -> None:
    partition = given.host(led_in(0))
    given.files.fault = lambda call, path: errno.ENOSPC if "leader-epoch" in path else 0

    with pytest.raises(StorageError):
        given.host(led_in(1))
    given.files.fault = lambda call, path: 0

    assert append(partition) == 0
    assert partition.state == led_in(0)
    assert given.host(led_in(2)) is partition
    assert list(partition.log.epochs) == [EpochEntry(0, 0), EpochEntry(2, 1)]


def test_a_state_of_the_past_changes_nothing_on_the_disk(given: Given) -> None:
    given.host(led_in(3))
    followed = LeaderAndIsrState(1, 7, (1, BROKER_ID), (1, BROKER_ID), partition_epoch=7)
    partition = given.host(followed)

    setup = given.begin(led_in(5))

    assert not setup.blocks
    given.replicas.complete_setup(setup)
    assert partition.state == followed
    assert list(partition.log.epochs) == [EpochEntry(3, 0)]


def test_a_log_without_a_topic_id_gets_the_one_of_its_topic(tmp_path: Path) -> None:
    """As a log of Kafka before 2.8, or one whose damaged `partition.metadata` was deleted."""
    first = Given(tmp_path)
    append(first.host(led_in(0)))
    first.logs.stop(0)
    metadata = tmp_path / "orders-0" / "partition.metadata"
    content = metadata.read_bytes()
    metadata.unlink()

    again = Given(tmp_path)
    setup = again.begin(led_in(0))
    assert setup.blocks
    setup.run()
    partition = again.replicas.complete_setup(setup)

    assert metadata.read_bytes() == content
    assert partition.log.topic_id == UUID(bytes=TOPIC_ID)
    other_topic = UUID(int=8).bytes
    assert again.replicas.log_of_other_topic(ORDERS, other_topic) is partition.log
    assert not again.begin(led_in(0)).blocks
    again.logs.abandon()
