"""Brokers in this process replicate a partition over real connections and real logs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from broker.wire import a_batch
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.leader_epochs import EpochEntry
from odradek.log.partition.follower_batches import FollowerBatches
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    DeleteRecordsRequest,
    FetchRequest,
    ListOffsetsRequest,
    ProduceRequest,
)
from odradek.replication.leader_throttle import LeaderThrottle
from odradek.replication.partition import Partition
from replication.replicated import PATIENCE_S, Replicated, run_replicated, until

ALL = (0, 1, 2)


def append(partition: Partition, *values: bytes, acks: int = 1) -> int:
    batch = memoryview(bytearray(a_batch(*values, timestamp_ms=1_700_000_000_000)))
    return partition.append(batch, acks, 1_700_000_000_000).base_offset


def a_produce(value: bytes, timeout_ms: int = 20_000) -> ProduceRequest:
    part = ProduceRequest.TopicData.PartitionData(index=0, records=bytes(a_batch(value)))
    topic = ProduceRequest.TopicData(name="orders", partition_data=[part])
    return ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=[topic])


async def produce(replicated: Replicated, broker_id: int, value: bytes, timeout_ms: int = 20_000) -> int:
    """With acks=all, over a connection; the error code."""
    wire = await replicated.brokers[broker_id].connect()
    response = await wire.ask(ApiKey.PRODUCE, 9, a_produce(value, timeout_ms))
    wire.writer.close()
    return int(response.responses[0].partition_responses[0].error_code)


# Following


def test_replicas_are_byte_identical_and_know_the_high_watermark(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        for number in range(50):
            append(replicated.partition(0), *(b"%d" % number for _ in range(number % 5 + 1)))
            if number % 10 == 0:
                await asyncio.sleep(0)
        await replicated.until_identical()
        assert replicated.partition(0).log.log_end_offset == 150

    run_replicated(tmp_path, scenario)


def test_acks_all_is_answered_when_every_replica_in_sync_has_it(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        for number in range(10):
            assert await produce(replicated, 0, b"%d" % number) == ErrorCode.NONE
            ends = [replicated.partition(one).log.log_end_offset for one in ALL]
            assert ends == [number + 1] * 3

    run_replicated(tmp_path, scenario)


def test_a_throttled_leader_holds_back_followers_out_of_sync_only(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        rate = 1
        replicated.brokers[0].services.leader_throttle = LeaderThrottle(0, lambda: rate)
        replicated.config = {"leader_replication_throttled_replicas": ("0:0",)}
        replicated.is_controller_away = True  # so that broker 1 cannot join the ISR
        replicated.elect(0, (0, 2))
        leader, behind, in_sync = map(replicated.partition, ALL)
        append(leader, b"sent before anything is owed")
        await until(lambda: behind.log.log_end_offset == in_sync.log.log_end_offset == 1)

        append(leader, b"held back")
        await until(lambda: in_sync.log.log_end_offset == 2)
        fetched = leader.followers[1].last_fetch_ms
        await until(lambda: leader.followers[1].last_fetch_ms > fetched)
        assert behind.log.log_end_offset == 1
        rate = 1_000_000_000
        await replicated.until_identical()

    run_replicated(tmp_path, scenario)


def test_small_segments_are_followed(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.config = {"internal_segment_bytes": 1000}
        replicated.elect(0, ALL)
        for _ in range(50):
            append(replicated.partition(0), b"x" * 200)
        await replicated.until_identical()
        assert len(list(replicated.partition(1).log.segments)) > 5

    run_replicated(tmp_path, scenario)


def test_a_new_leader_continues_where_the_old_one_was(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        assert await produce(replicated, 0, b"first") == ErrorCode.NONE
        for leader in (1, 2, 0, 1):
            replicated.elect(leader)
            assert await produce(replicated, leader, b"by %d" % leader) == ErrorCode.NONE
        await replicated.until_identical()
        assert replicated.leader_epochs(0) == [EpochEntry(epoch, epoch) for epoch in range(5)]

    run_replicated(tmp_path, scenario)


def test_a_leader_that_was_cut_off_drops_what_only_it_has(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        append(replicated.partition(0), b"committed")
        await replicated.until_identical()
        # Broker 0 does not learn of it and continues in its epoch.
        replicated.elect(1, (1, 2), only=(1, 2))
        append(replicated.partition(0), b"lost", b"lost too")
        append(replicated.partition(0), b"also lost")
        append(replicated.partition(1), b"kept")
        await replicated.until_identical(1, 2)
        assert replicated.partition(0).log.high_watermark == 1

        replicated.apply_state(0)

        await replicated.until_identical()
        assert replicated.leader_epochs(0) == [EpochEntry(0, 0), EpochEntry(1, 1)]
        assert replicated.brokers[0].services.replicas.counters.truncations == 1

    run_replicated(tmp_path, scenario)


def test_logs_that_part_several_epochs_ago_are_joined(tmp_path: Path) -> None:
    """KIP-279: each has epochs that the other never saw."""

    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        append(replicated.partition(0), b"common")
        await replicated.until_identical()
        for leader in (1, 2, 1, 2):
            # Each writes alone: the other one is not notified until the end.
            replicated.elect(leader, (leader,), only=(leader,))
            append(replicated.partition(leader), b"by %d" % leader, b"alone")
        replicated.elect(1, (1,))
        append(replicated.partition(1), b"decided")
        await replicated.until_identical()
        assert [entry.epoch for entry in replicated.leader_epochs(2)] == [0, 1, 3, 5]

    run_replicated(tmp_path, scenario)


def test_a_follower_that_is_too_far_behind_restarts_at_the_leaders_log_start(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.config = {"internal_segment_bytes": 500}
        replicated.elect(0, (0,), only=(0,))
        leader = replicated.partition(0)
        for _ in range(20):
            append(leader, b"x" * 100)
        leader.log.delete_records(13)
        leader.log.enforce_retention(1_700_000_000_000)
        replicated.apply_state(1)
        replicated.apply_state(2)
        await until(lambda: replicated.partition(1).log.log_end_offset == 20)
        await replicated.until_identical(1, 2)
        assert replicated.partition(1).log.log_start_offset == 13
        assert replicated.content(0).endswith(replicated.content(1))

    run_replicated(tmp_path, scenario)


def test_a_follower_restarts_in_the_middle_of_a_batch(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, (0,), only=(0,))
        append(replicated.partition(0), *(b"%d" % number for number in range(10)))
        replicated.partition(0).log.delete_records(4)
        replicated.apply_state(1)
        await until(lambda: replicated.partition(1).log.high_watermark == 10)
        assert replicated.partition(1).log.log_start_offset == 4
        assert replicated.content(1) == replicated.content(0)

    run_replicated(tmp_path, scenario)


def test_a_follower_with_more_than_its_leader_of_the_same_epoch_is_cut(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        for _ in range(5):
            append(replicated.partition(0), b"x")
        await replicated.until_identical()
        await replicated.stop(2)
        # The leader comes back with a shortened log, in the epoch that both know last.
        replicated.partition(0).log.truncate_to(3, now_ms=0)
        await replicated.start(2)
        replicated.apply_state(2)
        await until(lambda: replicated.partition(2).log.log_end_offset == 3)
        await until(lambda: replicated.partition(1).log.log_end_offset == 3)
        assert replicated.content(2) == replicated.content(0)

    run_replicated(tmp_path, scenario)


def test_a_corrupt_batch_of_the_leader_is_never_appended(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL, only=(0,))
        append(replicated.partition(0), b"intact")
        append(replicated.partition(0), b"damaged later")
        log = replicated.partition(0).log
        path = Path(log.directory.path) / "00000000000000000000.log"
        content = bytearray(path.read_bytes())
        content[log.segments.active.log.size - 3] ^= 1
        path.write_bytes(content)
        replicated.apply_state(1)
        counters = replicated.brokers[1].services.replicas.counters
        await until(lambda: counters.corrupt_batches > 2)
        assert replicated.partition(1).log.log_end_offset <= 1

    run_replicated(tmp_path, scenario)


def test_epochs_are_on_the_disk_before_the_first_append_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: list[tuple[int, list[str]]] = []
    append_batches = PartitionLog.append_follower_batches

    def noting_epochs(log: PartitionLog, found: FollowerBatches, now_ms: int) -> AppendInfo | None:
        path = Path(log.directory.path) / "leader-epoch-checkpoint"
        on_disk.append((log.log_end_offset, path.read_text().splitlines()[2:]))
        return append_batches(log, found, now_ms)

    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        append(replicated.partition(0), b"x")
        await replicated.until_identical()
        replicated.elect(0)
        append(replicated.partition(0), b"x")
        await replicated.until_identical()

    monkeypatch.setattr(PartitionLog, "append_follower_batches", noting_epochs)
    run_replicated(tmp_path, scenario)
    assert sorted(on_disk) == [(0, ["0 0"])] * 2 + [(1, ["0 0", "1 1"])] * 2


def test_many_partitions_are_added_while_a_fetch_waits(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        for index in range(20):
            replicated.state = replicated.state._replace(leader_epoch=index, leader_id=0, isr=(0, 1))
            for broker in replicated.brokers.values():
                broker.host(partition=index, state=replicated.state)
            append(replicated.brokers[0].services.replicas.get("orders", index), b"%d" % index)
            await asyncio.sleep(0.02)
        followers = [replicated.brokers[1].services.replicas.get("orders", index) for index in range(20)]
        await until(lambda: all(one.log.log_end_offset == 1 for one in followers))
        for index, follower in enumerate(followers):
            (segment,) = follower.log.segments
            assert segment.log.read(0, segment.log.size).endswith(b"%d\x00" % index)

    longer_than_the_test_waits = str(int(4000 * PATIENCE_S))
    settings = (
        f"replica.fetch.wait.max.ms={longer_than_the_test_waits}",
        f"replica.socket.timeout.ms={longer_than_the_test_waits}",
    )
    run_replicated(tmp_path, scenario, 2, settings)


# In-sync replicas


def test_a_stopped_follower_leaves_the_isr_and_joins_again(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        assert await produce(replicated, 0, b"by three") == ErrorCode.NONE
        await replicated.stop(2)
        answering = asyncio.ensure_future(produce(replicated, 0, b"by two"))
        await until(lambda: replicated.partition(0).isr == (0, 1))
        assert await answering == ErrorCode.NONE
        await replicated.start(2)
        replicated.apply_state(2)
        await until(lambda: set(replicated.partition(0).isr) == set(ALL))
        await replicated.until_identical()
        counters = replicated.brokers[0].services.replicas.counters
        # On a busy machine a live follower may have left and joined as well.
        assert counters.isr_shrinks >= 1
        assert counters.isr_expands >= 1

    run_replicated(tmp_path, scenario, settings=("replica.lag.time.max.ms=300",))


def test_nothing_is_acknowledged_while_a_smaller_isr_is_not_confirmed(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        assert await produce(replicated, 0, b"by three") == ErrorCode.NONE
        replicated.is_controller_away = True
        await replicated.stop(2)
        assert await produce(replicated, 0, b"x", timeout_ms=1000) == ErrorCode.REQUEST_TIMED_OUT
        assert replicated.partition(0).pending is not None
        assert replicated.partition(0).log.high_watermark == 1
        replicated.is_controller_away = False
        await until(lambda: replicated.partition(0).log.high_watermark == 2)
        assert replicated.alterations == [(0, 1)]

    run_replicated(tmp_path, scenario, settings=("replica.lag.time.max.ms=300",))


def test_too_few_in_sync_refuse_before_and_after_the_append(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.config = {"min_insync_replicas": 2}
        replicated.elect(0, (0, 1))
        assert await produce(replicated, 0, b"a") == ErrorCode.NONE
        await replicated.stop(1)
        await replicated.stop(2)
        after = await produce(replicated, 0, b"b", timeout_ms=500)
        assert after in (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.REQUEST_TIMED_OUT)
        await until(lambda: replicated.partition(0).isr == (0,))
        assert await produce(replicated, 0, b"c") == ErrorCode.NOT_ENOUGH_REPLICAS
        assert replicated.partition(0).log.high_watermark == 1

    run_replicated(
        tmp_path, scenario, settings=("replica.lag.time.max.ms=300", "replica.fetch.wait.max.ms=50")
    )


def test_a_follower_with_an_empty_disk_is_removed_and_joins_when_it_has_everything(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        for _ in range(20):
            append(replicated.partition(0), b"x" * 100)
        await replicated.until_identical()
        await replicated.stop(2)
        (tmp_path / "broker-2").rename(tmp_path / "lost")
        await replicated.start(2)
        replicated.apply_state(2)
        await until(lambda: replicated.alterations[-1:] == [ALL])
        assert replicated.alterations == [(0, 1), ALL]
        await replicated.until_identical()

    run_replicated(tmp_path, scenario)


# Requests that depend on followers


def test_delete_records_waits_for_the_followers(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        for _ in range(5):
            append(replicated.partition(0), b"x")
        await replicated.until_identical()
        asked = DeleteRecordsRequest.Topics.Partitions(partition_index=0, offset=3)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.Topics(name="orders", partitions=[asked])], timeout_ms=20_000
        )
        wire = await replicated.brokers[0].connect()
        response = await wire.ask(ApiKey.DELETE_RECORDS, 2, request)
        (row,) = response.topics[0].partitions
        assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, 3)
        assert [replicated.partition(one).log.log_start_offset for one in ALL] == [3, 3, 3]
        wire.writer.close()

    run_replicated(tmp_path, scenario)


def test_delete_records_times_out_if_a_follower_does_not_follow(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, (0,), only=(0,))
        append(replicated.partition(0), b"x")
        asked = DeleteRecordsRequest.Topics.Partitions(partition_index=0, offset=1)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.Topics(name="orders", partitions=[asked])], timeout_ms=100
        )
        wire = await replicated.brokers[0].connect()
        response = await wire.ask(ApiKey.DELETE_RECORDS, 2, request)
        (row,) = response.topics[0].partitions
        assert (row.error_code, row.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        wire.writer.close()

    run_replicated(tmp_path, scenario)


@pytest.mark.parametrize(("version", "error"), [(4, 5), (5, ErrorCode.OFFSET_NOT_AVAILABLE)])
def test_a_new_leader_has_no_latest_offset_before_its_epoch_is_committed(
    tmp_path: Path, version: int, error: int
) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, ALL)
        append(replicated.partition(0), b"x")
        await replicated.until_identical()
        append(replicated.partition(0), b"not known to be committed")
        await until(lambda: replicated.partition(1).log.log_end_offset == 2)
        await replicated.stop(0)
        await replicated.stop(2)
        before = replicated.partition(1).log.high_watermark
        replicated.elect(1)
        asked = ListOffsetsRequest.Topics.Partitions(partition_index=0, timestamp=-1)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsRequest.Topics(name="orders", partitions=[asked])]
        )
        wire = await replicated.brokers[1].connect()
        response = await wire.ask(ApiKey.LIST_OFFSETS, version, request)
        (row,) = response.topics[0].partitions
        if before < 2:
            assert (row.error_code, row.offset) == (error, -1)
        await replicated.start(2)
        replicated.apply_state(2)
        await replicated.start(0)
        replicated.apply_state(0)
        await replicated.until_identical()
        response = await wire.ask(ApiKey.LIST_OFFSETS, version, request)
        (row,) = response.topics[0].partitions
        assert (row.error_code, row.offset) == (ErrorCode.NONE, 2)
        wire.writer.close()

    run_replicated(tmp_path, scenario)


def test_a_consumer_is_sent_to_the_follower_in_its_rack(tmp_path: Path) -> None:
    async def scenario(replicated: Replicated) -> None:
        replicated.racks.update({0: "a", 1: "b", 2: "c"})
        replicated._tell_of_brokers()
        replicated.elect(0, ALL)
        append(replicated.partition(0), b"x")
        await replicated.until_identical()

        async def fetch(broker_id: int, rack: str) -> object:
            asked = FetchRequest.Topics.Partitions(partition=0, partition_max_bytes=1 << 20)
            request = FetchRequest(
                topics=[FetchRequest.Topics(topic="orders", partitions=[asked])], rack_id=rack, min_bytes=1
            )
            wire = await replicated.brokers[broker_id].connect()
            response = await wire.ask(ApiKey.FETCH, 11, request)
            wire.writer.close()
            (row,) = response.responses[0].partitions
            return row.preferred_read_replica, bytes(row.records) == replicated.content(0)

        assert await fetch(0, "b") == (1, False)
        assert await fetch(1, "b") == (-1, True)
        assert await fetch(0, "a") == (-1, True)
        assert await fetch(0, "elsewhere") == (-1, True)

    run_replicated(
        tmp_path,
        scenario,
        settings=("replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",),
    )


# Topics of the same name


def test_a_follower_does_not_mix_a_topic_with_an_earlier_one_of_its_name(tmp_path: Path) -> None:
    """KIP-516: it follows by topic id, whatever the name is."""

    async def scenario(replicated: Replicated) -> None:
        replicated.elect(0, (0,), only=(0,))
        append(replicated.partition(0), b"of the new topic")
        replicas = replicated.brokers[1].services.replicas
        earlier = replicas.host(
            TopicPartition("orders", 0), UUID(int=99).bytes, replicated.state, LogConfig(), now_ms=0
        )
        await asyncio.sleep(0.5)
        assert earlier.log.log_end_offset == 0

        # What LeaderAndIsr with the new id does: the log of the earlier topic is set aside.
        replicas.drop(earlier.topic_partition)
        replicas.logs.begin_setting_aside(earlier.topic_partition)()
        replicated.apply_state(1)
        await replicated.until_identical(0, 1)

    run_replicated(tmp_path, scenario, 2)
