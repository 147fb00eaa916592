"""`flush.messages` holds an answer, and what consumers see, back until the records are on the disk."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.broker.server import BrokerServer
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest, OffsetCommitRequest
from odradek.testing.faulty_files import FaultyFiles

from ..conftest import Wire
from ..on_this_loop import a_broker, connect, create_topic, run, until
from ..test_produce_and_fetch import a_batch, a_fetch, a_produce, the_row, values_in

HELD_SECONDS = 0.1


class HeldSyncs:
    """A disk whose syncs of one topic wait until they are released."""

    def __init__(self) -> None:
        self.files = FaultyFiles()
        self.files.fault = self._fault
        self.released = threading.Event()
        self.begun = 0
        self.error = 0

    def _fault(self, call: str, path: str) -> int:
        if call != "sync" or "/orders-" not in path or not path.endswith(".log"):
            return 0
        self.begun += 1
        self.released.wait(20)
        return self.error


@asynccontextmanager
async def held(directory: Path, *settings: str) -> AsyncIterator[tuple[HeldSyncs, BrokerServer, Wire]]:
    disk = HeldSyncs()
    async with a_broker(directory, *settings, files=disk.files) as (server, wire):
        try:
            yield disk, server, wire
        finally:
            disk.released.set()


@pytest.mark.parametrize("acks", [1, -1])
def test_a_produce_is_answered_and_read_after_the_sync_that_flush_messages_asks_for(
    tmp_path: Path, acks: int
) -> None:
    async def main() -> None:
        async with held(tmp_path) as (disk, server, wire):
            await create_topic(wire, "orders", flush_messages=1)
            consumer = await connect(server)
            wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"a"), acks=acks))
            await until(lambda: disk.begun)
            answer = asyncio.ensure_future(wire.receive(ApiKey.PRODUCE, 9))
            row = the_row(await consumer.ask(ApiKey.FETCH, 12, a_fetch(max_wait_ms=100)))
            assert (row.high_watermark, values_in(row)) == (0, [])
            assert not answer.done()

            disk.released.set()

            row = the_row((await answer)[1])
            assert (row.error_code, row.base_offset) == (0, 0)
            assert server.services.replicas.get("orders", 0).log.recovery_point == 1
            assert values_in(the_row(await consumer.ask(ApiKey.FETCH, 12, a_fetch()))) == [b"a"]
            consumer.writer.close()

    run(main)


def test_only_the_append_that_reaches_flush_messages_waits(tmp_path: Path) -> None:
    async def main() -> None:
        async with held(tmp_path) as (disk, _, wire):
            await create_topic(wire, "orders", flush_messages=3)
            for _ in range(2):
                answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"a")))
                assert the_row(answer).error_code == 0
            assert disk.begun == 0
            wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"a")))
            await until(lambda: disk.begun)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wire.reader.readexactly(4), HELD_SECONDS)

    run(main)


def test_producers_share_one_sync(tmp_path: Path) -> None:
    async def main() -> None:
        async with held(tmp_path) as (disk, server, wire):
            await create_topic(wire, "orders", flush_messages=1)
            first = await connect(server)
            first.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"first")))
            await until(lambda: disk.begun)
            wires = [await connect(server) for _ in range(5)]
            for one in wires:
                one.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"later")))
            log = server.services.replicas.get("orders", 0).log
            await until(lambda: log.log_end_offset == 1 + len(wires))
            disk.released.set()
            for one in (first, *wires):
                _, response = await one.receive(ApiKey.PRODUCE, 9)
                assert the_row(response).error_code == 0
                one.writer.close()
            assert disk.begun == 2

    run(main)


def test_a_sync_that_fails_is_the_answer(tmp_path: Path) -> None:
    async def main() -> None:
        settings = f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}"
        async with held(tmp_path, settings) as (disk, _, wire):
            await create_topic(wire, "orders", flush_messages=1)
            disk.error = errno.EIO
            disk.released.set()
            row = the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"a"))))
            assert row.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(main)


def test_a_committed_offset_waits_for_the_sync_too(tmp_path: Path) -> None:
    """`log.flush.interval.messages` holds for internal topics as for any other."""

    async def main() -> None:
        settings = ("log.flush.interval.messages=1", "offsets.topic.num.partitions=1")
        async with a_broker(tmp_path, *settings) as (server, wire):
            await create_topic(wire, "orders")
            key = FindCoordinatorRequest(key_type=0, coordinator_keys=["group"])
            await wire.ask(ApiKey.FIND_COORDINATOR, 4, key)
            await server.services.wait_for_topic("__consumer_offsets")
            partition = OffsetCommitRequest.Topics.Partitions(partition_index=0, committed_offset=7)
            commit = OffsetCommitRequest(
                group_id="group",
                topics=[OffsetCommitRequest.Topics(name="orders", partitions=[partition])],
            )
            answer = await wire.ask(ApiKey.OFFSET_COMMIT, 8, commit)
            assert [row.error_code for topic in answer.topics for row in topic.partitions] == [0]
            log = server.services.replicas.get("__consumer_offsets", 0).log
            assert log.log_end_offset == 1
            assert (log.recovery_point, log.high_watermark) == (1, 1)

    run(main)
