"""Apache Kafka 4.3.1 starts on a partition that we wrote, and serves it; our tools read Kafka's directory.

The topic is made in Kafka, Kafka is stopped, the partition's files are replaced by ours, Kafka starts again.
Kafka's `partition.metadata` stays, since it has the topic's id in this cluster.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from log.given_directories import fill_with_everything
from log.given_logs import NOW_MS, open_log
from odradek.log.config import LogConfig
from odradek.log.offline.fork import fork
from odradek.log.offline.scan import scan
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import LogFinding

pytestmark = [pytest.mark.java, pytest.mark.slow]

PEERS = Path(__file__).resolve().parents[2] / "bench" / "peers"
CONFIG = LogConfig(internal_segment_bytes=20_000, index_interval_bytes=1000)


def free_port() -> int:
    """One whose number plus 1000, the controller's, is in range too."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
        if port < 60_000:
            return port


@contextmanager
def kafka(data: Path, port: int) -> Iterator[str]:
    settings = ["offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2"]
    subprocess.run([PEERS / "start", data, str(port), *settings], check=True, stdout=subprocess.DEVNULL)
    try:
        yield f"localhost:{port}"
    finally:
        subprocess.run([PEERS / "stop", data], check=True)


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found


def consume(address: str, *, isolation: str) -> list[tuple[int, bytes]]:
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition("orders", 0, 0)])
    found: list[tuple[int, bytes]] = []
    while (message := consumer.poll(30)) is not None and not message.error():
        found.append((message.offset(), message.value()))
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def scanned(path: Path, *, read_committed: bool) -> list[tuple[int, bytes]]:
    rows = (row for batch in scan(path, read_committed=read_committed) for row in batch.to_pylist())
    return [(row["offset"], row["value"]) for row in rows]


def offset_at(address: str, timestamp_ms: int) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers"})
    (found,) = consumer.offsets_for_times([TopicPartition("orders", 0, timestamp_ms)], timeout=30)
    consumer.close()
    return int(found.offset)


def replace_by_ours(partition: Path) -> None:
    for path in partition.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    log = open_log(partition, CONFIG)
    fill_with_everything(log, 600, second_epoch=0)  # Kafka leads in epoch 1 then
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW_MS)


def test_kafka_serves_what_we_wrote_and_our_tools_read_what_kafka_wrote(tmp_path: Path) -> None:
    data, port = tmp_path / "kafka", free_port()
    partition = data / "logs" / "orders-0"
    with kafka(data, port) as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        keeps_all = {"retention.ms": "-1", "segment.bytes": "1048576"}
        for created in admin.create_topics([NewTopic("orders", 1, 1, config=keeps_all)]).values():
            created.result()
    replace_by_ours(partition)
    assert len(list(partition.glob("*.log"))) > 5
    everything, committed = (scanned(partition, read_committed=flag) for flag in (False, True))
    assert len(everything) > len(committed) > 1000

    with kafka(data, port) as address:
        assert consume(address, isolation="read_uncommitted") == everything
        assert consume(address, isolation="read_committed") == committed
        for second in (0, 7, 300, 597):
            timestamp_ms = NOW_MS + second * 1000
            (rows, *_) = scan(partition, start_timestamp_ms=timestamp_ms)
            assert offset_at(address, timestamp_ms) == rows.column("offset")[0].as_py()
        producer = Producer({"bootstrap.servers": address, "compression.type": "zstd"})
        for number in range(2000):
            producer.produce("orders", value=b"from Kafka %d" % number, timestamp=NOW_MS + 10**6 + number)
        producer.flush()
        fork(str(data / "logs"), str(tmp_path / "fork"))

    assert len(scanned(partition, read_committed=False)) == len(everything) + 2000
    assert findings(data / "logs") == []
    # Kafka was running: its checkpoints are older than its logs, as after a crash.
    assert findings(tmp_path / "fork") == []
    assert scanned(tmp_path / "fork" / "orders-0", read_committed=False)[: len(everything)] == everything
    shutil.rmtree(data)
