"""Apache Kafka 3.9 (ZooKeeper) and our log alternate on one data directory; no record gets lost.

Kafka writes, stops; we load its directory, append, stop cleanly (or do not); Kafka starts on it, serves all
records to a client, and takes new ones, which we then read back from the files.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.common.ids import TopicPartition as Partition
from odradek.log.checkpoints import decode_meta_properties
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.log.partition.reading import Isolation
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.kernels.record_objects import Record
from odradek.records.record import read_records

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"
TOPIC = "orders"
CONFIG = LogConfig(internal_segment_bytes=20_000)

pytestmark = [pytest.mark.java, pytest.mark.slow]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def now_ms() -> int:
    return int(time.time() * 1000)


def peer(script: str, *arguments: str, **environment: str) -> None:
    done = subprocess.run(
        [str(PEERS / script), *arguments],
        env={**os.environ, "KAFKA_VERSION": "3.9.2", **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def zookeeper(directory: Path) -> Iterator[str]:
    port = free_port()
    peer("start-zookeeper", str(directory), str(port))
    try:
        yield f"localhost:{port}"
    finally:
        peer("stop", str(directory))


@contextmanager
def kafka(directory: Path, store: str) -> Iterator[str]:
    port = free_port()
    settings = ["log.segment.bytes=1048576", "group.initial.rebalance.delay.ms=0", "num.partitions=1"]
    peer("start", str(directory), str(port), *settings, ZOOKEEPER=store, KAFKA_HEAP_OPTS="-Xmx512M")
    try:
        yield f"localhost:{port}"
    finally:
        peer("stop", str(directory))


def produce(address: str, values: list[bytes], codec: str) -> None:
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 5})
    for value in values:
        producer.produce(TOPIC, key=value[:4], value=value)
    assert producer.flush(60) == 0


def consume(address: str, count: int) -> list[tuple[int, bytes]]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append((message.offset(), message.value()))
    consumer.close()
    return found


@contextmanager
def our_manager(data: Path, *, stops_cleanly: bool) -> Iterator[LogManager]:
    logs = data / "logs"
    owner = decode_meta_properties((logs / "meta.properties").read_bytes())
    manager = LogManager([str(logs)], broker_id=owner.broker_id, cluster_id=owner.cluster_id)
    report = manager.start(now_ms(), lambda topic: CONFIG)
    assert not report.corrupted
    yield manager
    if stops_cleanly:
        manager.stop(now_ms())
    else:
        manager.abandon()


def ours(data: Path, values: list[bytes], *, stops_cleanly: bool) -> list[tuple[int, bytes | None]]:
    """Append as odradek, and return everything that the log then has."""
    with our_manager(data, stops_cleanly=stops_cleanly) as manager:
        log = manager.logs[Partition(TOPIC, 0)]
        for number in range(0, len(values), 10):
            records = [
                Record(index, now_ms(), value[:4], value)
                for index, value in enumerate(values[number : number + 10])
            ]
            batch = build_batch(records, codec=Codec(number // 10 % 5))
            log.append_as_leader(batch, log.epochs.latest, now_ms=now_ms())
        log.update_high_watermark(log.log_end_offset)
        return [(record.offset, record.value) for record in _records(log)]


def _records(log: object) -> Iterator[Record]:
    from odradek.log.partition.partition_log import PartitionLog

    assert isinstance(log, PartitionLog)
    offset = log.log_start_offset
    while (part := log.read(offset, 1 << 20, isolation=Isolation.LOG_END).range) is not None:
        content = part.read()
        for position, header in iterate_headers(content):
            yield from read_records(content, position, max_bytes=1 << 24)
            offset = header.next_offset


def test_kafka_and_odradek_take_turns_on_one_directory(tmp_path: Path) -> None:
    data = tmp_path / "kafka"
    written = [b"%05d:" % number + b"x" * 90 for number in range(2500)]
    with zookeeper(tmp_path / "zookeeper") as store:
        with kafka(data, store) as address:
            admin = AdminClient({"bootstrap.servers": address})
            for future in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
                future.result(30)
            produce(address, written[:500], "zstd")
        assert ours(data, written[500:1000], stops_cleanly=True) == list(enumerate(written[:1000]))
        with kafka(data, store) as address:
            assert consume(address, 1000) == list(enumerate(written[:1000]))
            produce(address, written[1000:1500], "lz4")
        assert ours(data, written[1500:2000], stops_cleanly=False) == list(enumerate(written[:2000]))
        with kafka(data, store) as address:
            assert consume(address, 2000) == list(enumerate(written[:2000]))
            produce(address, written[2000:], "gzip")
        assert ours(data, [], stops_cleanly=True) == list(enumerate(written))
