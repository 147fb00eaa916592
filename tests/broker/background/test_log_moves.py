from __future__ import annotations

import errno
from pathlib import Path

from odradek.broker.settings.alter import Change, Operation
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
)
from odradek.testing.faulty_files import FaultyFiles

from ..conftest import Wire
from ..on_this_loop import a_broker, create_topic, run, until
from ..test_produce_and_fetch import a_batch, a_fetch, a_produce, the_row, values_in

ORDERS = TopicPartition("orders", 0)
SLOWLY = "replica.alter.log.dirs.io.max.bytes.per.second"


def two_dirs(tmp_path: Path) -> str:
    """The first one holds the store, the second one comes with the name `b`."""
    return f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}"


async def move(wire: Wire, path: Path | str, topic: str = "orders", partition: int = 0) -> int:
    wanted = AlterReplicaLogDirsRequest.Dirs(
        path=str(path), topics=[AlterReplicaLogDirsRequest.Dirs.Topics(name=topic, partitions=[partition])]
    )
    response = await wire.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, AlterReplicaLogDirsRequest(dirs=[wanted]))
    ((row,),) = [result.partitions for result in response.results]
    return row.error_code


async def rows(wire: Wire) -> dict[str, list[tuple[bool, int]]]:
    """By directory: whether it is a copy under way, and how many offsets it lacks."""
    response = await wire.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
    return {
        Path(result.log_dir).name: [
            (row.is_future_key, row.offset_lag) for topic in result.topics for row in topic.partitions
        ]
        for result in response.results
    }


async def produce(wire: Wire, *values: bytes) -> None:
    for value in values:
        assert the_row(await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(value)))).error_code == 0


async def values(wire: Wire) -> list[bytes]:
    return values_in(the_row(await wire.ask(ApiKey.FETCH, 12, a_fetch(partition_max_bytes=1 << 26))))


def directory_of(server) -> str:
    return Path(server.services.replicas.logs.directory_of(ORDERS).path).name


async def slow_down(server, bytes_per_second: int) -> None:
    change = Change(SLOWLY, Operation.SET, str(bytes_per_second))
    await server.services.broker_settings.change(lambda _: [change], is_default=True, validate_only=False)


def test_a_replica_moves_with_its_records_while_it_is_written(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            await create_topic(wire, "orders")
            before, target = directory_of(server), "b" if directory_of(server) == "a" else "a"
            await produce(wire, *(b"%d" % number + bytes(300_000) for number in range(12)))
            assert await move(wire, tmp_path / target) == 0
            await produce(wire, *(b"meanwhile %d" % number for number in range(50)))
            await until(lambda: directory_of(server) == target)
            await produce(wire, b"afterwards")

            fetched = await values(wire)
            partition = server.services.replicas.get(*ORDERS)
            assert [value.rstrip(b"\0") for value in fetched] == [
                *(b"%d" % number for number in range(12)),
                *(b"meanwhile %d" % number for number in range(50)),
                b"afterwards",
            ]
            assert partition.log.high_watermark == 63
            assert await rows(wire) == {before: [], target: [(False, 0)]}
            await until(lambda: not (tmp_path / before / "orders-0").exists())
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            assert len(await values(wire)) == 63
            assert directory_of(server) == target

    run(main)


def test_a_move_under_way_is_described_and_taken_up_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            await slow_down(server, 1)
            await create_topic(wire, "orders")
            target = "b" if directory_of(server) == "a" else "a"
            await produce(wire, *(b"%d" % number + bytes(300_000) for number in range(12)))
            assert await move(wire, tmp_path / target) == 0
            future, lag = (await rows(wire))[target][0]
            assert future
            assert 0 < lag <= 12
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            assert (await rows(wire))[target][0][0]
            await slow_down(server, 1 << 40)
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            await until(lambda: directory_of(server) == target)
            assert len(await values(wire)) == 12

    run(main)


def test_moving_back_and_deleting_end_a_move(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            await slow_down(server, 1)
            await create_topic(wire, "orders")
            before, target = directory_of(server), "b" if directory_of(server) == "a" else "a"
            await produce(wire, *(bytes(300_000) for _ in range(8)))
            assert await move(wire, tmp_path / target) == 0
            assert await move(wire, tmp_path / target) == 0
            assert len((await rows(wire))[target]) == 1
            assert await move(wire, tmp_path / before) == 0
            assert (await rows(wire))[target] == []

            assert await move(wire, tmp_path / target) == 0
            deletion = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=20_000)
            await wire.ask(ApiKey.DELETE_TOPICS, 5, deletion)
            assert await rows(wire) == {"a": [], "b": []}
            left = [path.name for name in "ab" for path in (tmp_path / name).glob("orders-0*")]
            assert left
            assert all(name.endswith("-delete") for name in left)

    run(main)


def test_each_refusal_has_its_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            await create_topic(wire, "orders")
            assert await move(wire, tmp_path / "nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert await move(wire, tmp_path / "b", topic="nothing") == unknown
            assert await move(wire, tmp_path / "b", topic="x" * 240) == ErrorCode.INVALID_TOPIC_EXCEPTION
            logs = server.services.replicas.logs
            logs.fail_directory(logs.directories[1], OSError(errno.EIO, "gone"))
            assert await move(wire, tmp_path / "b") == ErrorCode.KAFKA_STORAGE_ERROR

    run(main)


def test_a_future_topic_is_created_in_the_chosen_directory(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path)) as (server, wire):
            for name, target in (("first", "b"), ("second", "b"), ("third", "b")):
                await move(wire, tmp_path / target, topic=name)
                await create_topic(wire, name)
                directory = server.services.replicas.logs.directory_of(TopicPartition(name, 0))
                assert directory.path == str(tmp_path / target)

    run(main)


def test_a_disk_that_fails_under_the_copy_costs_the_move_and_not_the_records(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def main() -> None:
        async with a_broker(tmp_path / "a", two_dirs(tmp_path), files=files) as (server, wire):
            await create_topic(wire, "orders")
            before, target = directory_of(server), "b" if directory_of(server) == "a" else "a"
            await produce(wire, b"one", b"two")
            files.fault = lambda call, path: errno.EIO if call == "write_at" and "-future/" in path else 0
            await move(wire, tmp_path / target)
            logs = server.services.replicas.logs
            await until(lambda: not logs.moves)
            assert await values(wire) == [b"one", b"two"]
            assert [Path(one.path).name for one in logs.online_directories()] == [before]

    run(main)
