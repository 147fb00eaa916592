from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DeleteTopicsRequest
from odradek.records.builder import build_batch
from odradek.records.record import Record
from odradek.testing.faulty_files import FaultyFiles

from ..on_this_loop import a_broker, create_topic, run, until
from ..test_listeners import change
from ..test_produce_and_fetch import a_fetch, a_produce, the_row

ORDERS = TopicPartition("orders", 0)
QUICK = ("log.cleaner.backoff.ms=10", "log.cleaner.dedupe.buffer.size=2097152")
COMPACTED = {"cleanup_policy": "compact", "segment_bytes": 1048576, "min_cleanable_dirty_ratio": 0.01}


def keyed(key: bytes, value: bytes) -> bytes:
    return bytes(build_batch([Record(0, int(time.time() * 1000), key, value)]))


async def fill(wire, rounds: int) -> None:
    """More than one segment, with few keys."""
    for number in range(rounds):
        value = b"%d" % number + bytes(200_000)
        await wire.ask(ApiKey.PRODUCE, 9, a_produce(keyed(b"key %d" % (number % 2), value)))


def test_a_compacted_topic_keeps_the_last_value_of_each_key(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *QUICK) as (server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 30)
            log = server.services.replicas.get("orders", 0).log
            await until(lambda: log.size_in_bytes < 3_000_000 and "orders 0" in checkpoint(tmp_path))

            fetched = await wire.ask(ApiKey.FETCH, 12, a_fetch(partition_max_bytes=1 << 24))
            assert the_row(fetched).high_watermark == 30
            assert log.log_start_offset == 0
        assert "orders 0" in (tmp_path / "cleaner-offset-checkpoint").read_text()

    run(main)


def test_a_deleted_topic_is_forgotten_by_the_cleaner(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *QUICK) as (_server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 12)
            await until(lambda: "orders 0" in checkpoint(tmp_path))
            await wire.ask(
                ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=9999)
            )
            await until(lambda: "orders" not in checkpoint(tmp_path))

    run(main)


def checkpoint(directory: Path) -> str:
    path = directory / "cleaner-offset-checkpoint"
    return path.read_text() if path.exists() else ""


def test_a_cleaner_that_sleeps_to_keep_its_byte_rate_stops_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        slow = "log.cleaner.io.max.bytes.per.second=1"
        async with a_broker(tmp_path, *QUICK, slow) as (server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 12)
            await until(lambda: server.cleaning.manager.running)

    run(main)


def test_the_cleaner_can_be_switched_off(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, *QUICK, "log.cleaner.enable=false") as (server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 12)
            await asyncio.sleep(0.1)
            assert server.services.replicas.get("orders", 0).log.size_in_bytes > 2_400_000

    run(main)


def test_a_disk_that_fails_under_the_cleaner_goes_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fault = lambda call, path: errno.EIO if path.endswith(".cleaned") else 0

    async def main() -> None:
        async with a_broker(tmp_path, *QUICK, files=files) as (server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 12)
            await until(lambda: server.services.replicas.find("orders", 0) is None)
            (directory,) = server.services.replicas.logs.directories
            assert directory.failure is not None

    run(main)


def test_settings_of_the_cleaner_and_of_the_pool_change_while_the_broker_runs(tmp_path: Path) -> None:
    async def main() -> None:
        slow = ("log.cleaner.io.max.bytes.per.second=1", "log.cleaner.dedupe.buffer.size=4194304")
        async with a_broker(tmp_path, *QUICK, *slow) as (server, wire):
            await create_topic(wire, "orders", **COMPACTED)
            await fill(wire, 12)
            await until(lambda: server.cleaning.manager.running)
            await change(server, "log.cleaner.io.max.bytes.per.second", 1e12)
            await change(server, "log.cleaner.threads", 2)
            await change(server, "num.io.threads", 4)
            log = server.services.replicas.get("orders", 0).log
            await until(lambda: log.size_in_bytes < 2_000_000)
            # A change takes effect soon, not at once.
            await until(lambda: server.cleaning.manager.config.log_cleaner_threads == 2)
            await until(lambda: server.services.pool.count == 4)
            await create_topic(wire, "payments")

    run(main)
