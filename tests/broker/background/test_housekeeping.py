from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path

import pytest

from odradek.broker.background import housekeeping
from odradek.broker.background.housekeeping import LOGS_PER_YIELD
from odradek.common.ids import TopicPartition
from odradek.log.checkpoints import decode_offsets
from odradek.log.files.log_file import STEPS_FROM_BYTES
from odradek.protocol.api_key import ApiKey
from odradek.testing.faulty_files import FaultyFiles

from ..on_this_loop import a_broker, create_topic, run, until
from ..test_produce_and_fetch import a_batch, a_produce, the_row
from ..wire import a_batch as wire_batch
from .test_log_moves import two_dirs


def test_a_disk_that_cannot_sync_goes_offline_and_the_other_continues(tmp_path: Path) -> None:
    files = FaultyFiles()
    settings = (two_dirs(tmp_path), "log.flush.interval.ms=1")

    async def main() -> None:
        async with a_broker(tmp_path / "a", *settings, files=files) as (server, wire):
            await create_topic(wire, "orders", partitions=2)
            logs = server.services.replicas.logs
            first = logs.directory_of(TopicPartition("orders", 0))
            broken = f"{first.path}/orders-"
            files.fault = lambda call, path: errno.EIO if call == "sync" and path.startswith(broken) else 0
            for partition in (0, 1):
                await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), partition=partition))
            await until(lambda: len(logs.online_directories()) == 1)
            await until(lambda: len(server.services.replicas) == 1)
            (left,) = server.services.replicas
            await until(lambda: left.log.recovery_point == left.log.log_end_offset)
            index = left.topic_partition.partition
            answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"y"), partition=index))
            assert the_row(answer).error_code == 0

    run(main)


def test_old_segments_go_while_the_broker_runs(tmp_path: Path) -> None:
    settings = ("log.retention.check.interval.ms=20", "log.segment.delete.delay.ms=0")

    async def main() -> None:
        async with a_broker(tmp_path, *settings) as (server, wire):
            await create_topic(
                wire, "orders", segment_bytes=1 << 20, retention_bytes=1 << 20, retention_ms=-1
            )
            for _ in range(6):
                answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(bytes(500_000))))
                assert the_row(answer).error_code == 0
            log = server.services.replicas.get("orders", 0).log
            await until(lambda: log.log_start_offset > 0)
            assert log.log_end_offset == 6

    run(main)


def test_silent_producers_are_forgotten_by_a_clock_of_their_own(tmp_path: Path) -> None:
    settings = ("producer.id.expiration.check.interval.ms=20", "producer.id.expiration.ms=300")

    async def main() -> None:
        async with a_broker(tmp_path, *settings) as (server, wire):
            await create_topic(wire, "orders")
            batch = wire_batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0)
            answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(batch))
            assert the_row(answer).error_code == 0
            log = server.services.replicas.get("orders", 0).log
            assert log.producers.entries
            await until(lambda: not log.producers.entries)

    run(main)


@pytest.mark.parametrize("shortest", ["replica.high.watermark", "log.flush.offset", "log.flush.start.offset"])
def test_the_shortest_interval_of_a_checkpoint_counts(tmp_path: Path, shortest: str) -> None:
    names = ("replica.high.watermark", "log.flush.offset", "log.flush.start.offset")
    settings = [f"{name}.checkpoint.interval.ms={20 if name == shortest else 600_000}" for name in names]
    written = tmp_path / "recovery-point-offset-checkpoint"

    async def main() -> None:
        async with a_broker(tmp_path, *settings) as (_, wire):
            await create_topic(wire, "orders")
            await until(lambda: written.exists() and b"orders 0 0" in written.read_bytes())

    run(main)


def test_a_log_that_is_left_alone_is_cut_to_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "IDLE_CHECK_MS", 50)

    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            await create_topic(wire, "orders")
            log = server.services.replicas.get("orders", 0).log
            active = log.segments.active.log
            longest = 0
            while active.size <= STEPS_FROM_BYTES:
                answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(bytes(900_000))))
                assert the_row(answer).error_code == 0
                longest = max(longest, os.stat(active.path).st_size - active.size)
            assert longest > 0
            await until(lambda: os.stat(active.path).st_size == active.size)

    run(main)


@pytest.mark.parametrize(
    "task", ["flush_due_logs", "write_checkpoints", "remove_garbage", "give_back_idle_room"]
)
def test_others_run_between_the_logs_of_a_task(tmp_path: Path, task: str) -> None:
    rounds = 3

    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            await create_topic(wire, "orders", partitions=rounds * LOGS_PER_YIELD)
            await server.housekeeping.write_checkpoints()
            running = asyncio.ensure_future(getattr(server.housekeeping, task)())
            steps_of_others = 0
            while not running.done():
                await asyncio.sleep(0)
                steps_of_others += 1
            await running
            assert steps_of_others >= rounds

    run(main)


def test_a_log_that_comes_while_checkpoints_are_put_together_is_in_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they might take out of the files what a move between disks has just written."""
    monkeypatch.setattr(housekeeping, "LOGS_PER_YIELD", 1)

    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            await create_topic(wire, "orders", partitions=2)
            logs = server.services.replicas.logs
            writing = asyncio.ensure_future(server.housekeeping.write_checkpoints())
            await asyncio.sleep(0)
            late = TopicPartition("late", 0)
            logs.get_or_create(late, logs.logs[TopicPartition("orders", 0)].config, now_ms=0)
            await writing
            written = Path(logs.directories[0].path, "recovery-point-offset-checkpoint").read_bytes()
            assert set(decode_offsets(written)) == {TopicPartition("orders", n) for n in (0, 1)} | {late}

    run(main)
