"""A full disk: writes get a retriable error, reads continue, and writes resume when there is space again."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest, MetadataRequest
from odradek.testing.faulty_files import FaultyFiles

from .conftest import Wire
from .on_this_loop import a_broker, create_topic, run, until
from .test_produce_and_fetch import a_batch, a_fetch, a_produce, the_row, values_in


async def produce(wire: Wire, value: bytes, acks: int = -1, topic: str = "orders", partition: int = 0) -> int:
    request = a_produce(a_batch(value), acks=acks, topic=topic, partition=partition)
    return the_row(await wire.ask(ApiKey.PRODUCE, 9, request)).error_code


async def fetch(wire: Wire) -> list[bytes]:
    return values_in(the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch())))


def test_a_full_disk_refuses_writes_serves_reads_and_comes_back(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, "log.flush.interval.ms=1", files=files) as (server, wire):
            await create_topic(wire, "orders")
            assert await produce(wire, b"before") == 0
            files.free_bytes = 100
            for acks in (1, -1, 1):
                assert await produce(wire, bytes(1000), acks) == ErrorCode.KAFKA_STORAGE_ERROR
            assert await fetch(wire) == [b"before"]
            assert server.services.replicas.logs.online_directories()
            files.free_bytes = None
            assert await produce(wire, b"after") == 0
            assert await fetch(wire) == [b"before", b"after"]
        async with a_broker(tmp_path) as (_, wire):
            assert await fetch(wire) == [b"before", b"after"]

    run(main)


def test_a_full_disk_is_reported_once_and_so_is_free_space(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            await create_topic(wire, "orders")
            files.free_bytes = 100
            for _ in range(3):
                assert await produce(wire, bytes(1000)) == ErrorCode.KAFKA_STORAGE_ERROR
            (directory,) = server.services.replicas.logs.online_directories()
            directory.notice_room()
            files.free_bytes = None
            for _ in range(2):
                directory.notice_room()
            reported = [f"{record.levelname}: {record.message}" for record in caplog.records]
            assert [line for line in reported if "is full, writes are rejected" in line] == reported[:1]
            assert [line for line in reported if "has space again" in line] == reported[1:2]

    run(main)


def no_room_for(files: FaultyFiles, part: str) -> None:
    files.fault = lambda call, path: errno.ENOSPC if part in path and call != "exists" else 0


def free_space(files: FaultyFiles) -> None:
    files.fault = lambda call, path: 0


async def ask_for_late(wire: Wire) -> tuple[int, str | None]:
    """Make a topic of two partitions; what is said of it."""
    topic = CreateTopicsRequest.Topics(name="late", num_partitions=2, replication_factor=1)
    answer = await wire.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=200))
    (row,) = answer.topics
    return row.error_code, row.error_message


async def errors_in_metadata(wire: Wire) -> list[int]:
    """What clients get about the topic, and of each partition."""
    asked = MetadataRequest(topics=[MetadataRequest.Topics(name="late")], allow_auto_topic_creation=False)
    (topic,) = (await wire.ask(ApiKey.METADATA, 9, asked)).topics
    return [topic.error_code, *(row.error_code for row in topic.partitions)]


@pytest.mark.parametrize("part", ["/late-1", "/late-1/partition.metadata", "/late-1/00000000000000000000"])
def test_a_partition_that_found_no_room_is_made_when_there_is_some(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            no_room_for(files, part)
            reported = f"not all its partitions have leaders yet: the disk of {tmp_path} is full."
            code, message = await ask_for_late(wire)
            assert code == ErrorCode.REQUEST_TIMED_OUT
            assert reported in (message or "")
            assert await produce(wire, b"there", topic="late", partition=0) == 0
            assert await produce(wire, b"lost", topic="late", partition=1) == ErrorCode.KAFKA_STORAGE_ERROR
            assert await errors_in_metadata(wire) == [0, 0, ErrorCode.LEADER_NOT_AVAILABLE]

            await server.housekeeping.look_for_room()
            await until(lambda: all(one.is_full for one in server.services.replicas.logs.directories))
            assert await errors_in_metadata(wire) == [0, 0, ErrorCode.LEADER_NOT_AVAILABLE]
            free_space(files)
            await server.housekeeping.look_for_room()
            while await errors_in_metadata(wire) != [0, 0, 0]:
                pass
            # The metadata may name the leader before its log is made.
            while (
                code := await produce(wire, b"taken", topic="late", partition=1)
            ) == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                pass
            assert code == 0

    run(main)


@pytest.mark.parametrize("part", ["/late-1", "/late-1/partition.metadata"])
def test_a_topic_that_found_no_room_can_be_deleted_when_there_is_some(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            no_room_for(files, part)
            assert (await ask_for_late(wire))[0] == ErrorCode.REQUEST_TIMED_OUT
            await wire.ask(ApiKey.DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["late"], timeout_ms=200))
            free_space(files)
            await server.housekeeping.look_for_room()
            known = server.node.controller.context
            assert known is not None
            await until(lambda: "late" not in known.assignments)
            assert server.services.replicas.logs.online_directories()
            await create_topic(wire, "late", partitions=2)
            assert await produce(wire, b"anew", topic="late", partition=1) == 0

    run(main)


def test_a_topic_that_has_no_room_can_be_made_later(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path, files=files) as (server, wire):
            await create_topic(wire, "orders")
            files.fault = lambda call, path: errno.ENOSPC if "/late-" in path else 0
            topic = CreateTopicsRequest.Topics(name="late", num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=200)
            await wire.ask(ApiKey.CREATE_TOPICS, 7, request)
            assert await produce(wire, b"orders go on") == 0
            files.fault = lambda call, path: 0
            assert server.services.replicas.logs.online_directories()
        async with a_broker(tmp_path, files=files) as (_, wire):
            answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), topic="late"))
            assert the_row(answer).error_code == 0

    run(main)
