from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import threading
from pathlib import Path

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.log.files.file_system import OpenFile
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    LeaderAndIsrRequest,
)
from odradek.testing.faulty_files import FaultyFiles

from ..conftest import Wire
from ..on_this_loop import a_broker, connect, create_topic, run, until
from ..test_produce_and_fetch import a_batch, a_produce, the_row


class SlowDisk(FaultyFiles):
    """A disk whose syncs of a topic's files wait until the test lets them go."""

    __slots__ = ("is_slow", "let_go", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.let_go = threading.Event()
        self.waiting = 0

    def sync(self, file: OpenFile) -> None:
        if self.is_slow and "/orders-" in self._path(file):
            self.waiting += 1
            assert self.let_go.wait(20)
        super().sync(file)


def ask_for_orders(wire: Wire) -> None:
    """Without waiting for the answer."""
    topic = CreateTopicsRequest.Topics(name="orders", num_partitions=2, replication_factor=1)
    wire.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=20_000))


def test_others_are_served_while_a_topic_is_made_on_a_slow_disk(tmp_path: Path) -> None:
    files = SlowDisk()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            files.is_slow = True
            creating = asyncio.create_task(create_topic(wire, "orders", partitions=4))
            await until(lambda: files.waiting)
            other = await connect(server)
            await other.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            assert not creating.done()
            files.let_go.set()
            await creating
            assert len(server.services.replicas) == 4
            other.writer.transport.abort()

    run(main)


def test_control_requests_do_not_wait_for_the_threads_of_clients(tmp_path: Path) -> None:
    """Clients read what the page cache does not have: every thread waits for the disk."""
    let_go = threading.Event()

    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            pool = server.services.pool
            reads = [pool.submit(let_go.wait) for _ in range(server.config.num_io_threads)]
            try:
                await create_topic(wire, "orders", partitions=2)
                await wire.ask(
                    ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=20_000)
                )
                assert not any(read.done() for read in reads)
            finally:
                let_go.set()

    run(main)


def test_settings_changed_while_a_topic_is_made_count(tmp_path: Path) -> None:
    files = SlowDisk()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            files.is_slow = True
            creating = asyncio.create_task(create_topic(wire, "orders"))
            await until(lambda: files.waiting)
            settings = server.services.topic_settings
            await server.services.topics.change_configs("orders", lambda _: {"min.insync.replicas": "2"})
            await until(lambda: settings.log_config("orders").min_insync_replicas == 2)
            files.let_go.set()
            await creating
            assert server.services.replicas.get("orders", 0).log.config.min_insync_replicas == 2

    run(main)


def test_a_topic_deleted_while_it_is_made_is_gone_in_the_end(tmp_path: Path) -> None:
    files = SlowDisk()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            files.is_slow = True
            other = await connect(server)
            ask_for_orders(other)
            await until(lambda: files.waiting)
            deletion = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=20_000)
            deleting = asyncio.create_task(wire.ask(ApiKey.DELETE_TOPICS, 5, deletion))
            await until(lambda: wire.sent == 1)
            files.let_go.set()
            (row,) = (await deleting).responses
            other.writer.transport.abort()
            assert row.error_code == 0
            assert len(server.services.replicas) == 0
            names = [path.name for path in tmp_path.iterdir() if path.name.startswith("orders")]
            assert all(name.endswith("-delete") for name in names), names

    run(main)


def test_a_disk_that_cannot_take_a_new_partition_goes_offline_and_the_broker_lives(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            await create_topic(wire, "payments")
            files.fault = lambda call, path: errno.EIO if "/orders-" in path else 0
            other = await connect(server)
            ask_for_orders(other)
            await until(lambda: server.services.replicas.logs.directories[0].failure)
            row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), topic="payments")))
            assert row.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            other.writer.transport.abort()

    run(main)


def test_a_name_that_no_topic_has_is_refused_and_the_others_are_hosted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    states = LeaderAndIsrRequest.TopicStates
    names = ["", "..", "a/b", "orders"]

    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            topics = [
                states(
                    topic_name=name,
                    topic_id=bytes([number]) * 16,
                    partition_states=[states.PartitionStates(leader=0, isr=[0], replicas=[0])],
                )
                for number, name in enumerate(names, 1)
            ]
            request = LeaderAndIsrRequest(controller_epoch=99, topic_states=topics)
            answer = await wire.ask(ApiKey.LEADER_AND_ISR, 6, request)
            assert answer.error_code == 0
            codes = [topic.partition_errors[0].error_code for topic in answer.topics]
            assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION] * 3 + [0]
            assert server.services.replicas.get("orders", 0).is_leader

    run(main)
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def test_a_stop_waits_for_the_request_under_way(tmp_path: Path) -> None:
    files = SlowDisk()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (_, wire):
            files.is_slow = True
            ask_for_orders(wire)
            await until(lambda: files.waiting)
            asyncio.get_running_loop().call_later(0.05, files.let_go.set)
        files.is_slow = False
        async with a_broker(tmp_path, files=files) as (server, _):
            assert server.services.replicas.find("orders", 0) is not None

    run(main)


async def fill_orders(wire: Wire, value: bytes) -> None:
    await create_topic(wire, "orders", partitions=1)
    row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(value))))
    assert row.error_code == 0


def test_the_log_of_a_deleted_topic_is_not_served_for_a_new_one_of_the_same_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that slept while its topic was deleted and created again: its disk is as it was before."""
    data, kept = tmp_path / "data", tmp_path / "kept"

    async def main() -> None:
        async with a_broker(data) as (_, wire):
            await fill_orders(wire, b"of the deleted topic")
        shutil.copytree(data / "orders-0", kept)
        async with a_broker(data) as (_, wire):
            await wire.ask(
                ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["orders"], timeout_ms=20_000)
            )
            await create_topic(wire, "orders", partitions=1)
        shutil.rmtree(data / "orders-0")
        shutil.copytree(kept, data / "orders-0")

        with caplog.at_level(logging.WARNING):
            async with a_broker(data) as (server, wire):
                partition = server.services.replicas.get("orders", 0)
                assert partition.log.log_end_offset == 0
                row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"new"))))
                assert (row.error_code, row.base_offset) == (0, 0)
                assert partition.log.topic_id.bytes == partition.topic_id
        (aside,) = data.glob("orders-0.*-stray")
        assert b"of the deleted topic" in (aside / "00000000000000000000.log").read_bytes()
        (warning,) = [one.getMessage() for one in caplog.records if "deleted topic" in one.getMessage()]
        assert str(aside) in warning
        async with a_broker(data) as (server, wire):
            assert server.services.replicas.get("orders", 0).log.log_end_offset == 1

    run(main)
