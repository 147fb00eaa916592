"""Compaction, ours beside Apache Kafka's: the same segments, one thread each, alternating.

We write a log once for each shape of data. Kafka gets a copy of it in the place of an empty partition, and
cleans it after a change of the topic's settings; its own log lines say how long that took. The first
rounds, in which the JVM warms up, do not count. Both find the bytes in the page cache, and both sync what
they write.

    python bench/log/compaction.py [--megabytes 500] [--rounds 5] [--only KIND] [--port 19396]
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from rich.console import Console
from rich.table import Table

from odradek.common.ids import TopicPartition
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.manager import CleanerManager
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import Checkpoints, load_log
from odradek.records.builder import build_batch_from_columns
from odradek.records.compression import Codec

PEERS = Path(__file__).resolve().parents[1] / "peers"
WARM_UP_ROUNDS = 2
SEGMENT_BYTES = 100 * 2**20
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=SEGMENT_BYTES, min_cleanable_dirty_ratio=0.0)
CLEANED = re.compile(
    r"cleaned log (?P<topic>\S+)-0 .*?([\d.,]+) MB of log processed in (?P<seconds>[\d.,]+) seconds",
    re.DOTALL,
)


class LogShape(NamedTuple):
    """What a log is made of."""

    records_per_batch: int
    value_bytes: int
    keys_per_record: float
    codec: Codec = Codec.NONE


LOG_SHAPES = {
    "100 B records, 16 KiB batches, half of them superseded": LogShape(160, 70, 0.8),
    "100 B records, 16 KiB batches, few keys": LogShape(160, 70, 0.001),
    "1 KB records, 16 KiB batches, half of them superseded": LogShape(16, 1000, 0.8),
    "100 B records, one in a batch": LogShape(1, 70, 0.5),
    "100 B records, 16 KiB batches, lz4": LogShape(160, 70, 0.8, Codec.LZ4),
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def open_log(path: Path, checkpoints: Checkpoints) -> PartitionLog:
    handles = HandleCache(FileSystem(), 100)
    partition = TopicPartition("bench", 0)
    return load_log(partition, str(path), CONFIG, handles, now_ms=now_ms(), checkpoints=checkpoints)


def write_log(path: Path, shape: LogShape, megabytes: int) -> Checkpoints:
    """Fill a directory with closed segments; what a broker would know of it."""
    path.mkdir(parents=True)
    log = open_log(path, Checkpoints())
    rng = random.Random(1)
    count = megabytes * 2**20 // (shape.value_bytes + 30)
    keys = max(1, int(count * shape.keys_per_record))
    size = shape.records_per_batch
    while log.size_in_bytes < megabytes * 2**20:
        batch = build_batch_from_columns(
            [b"key-%012d" % rng.randrange(keys) for _ in range(size)],
            [rng.randbytes(shape.value_bytes // 2).hex().encode() for _ in range(size)],
            [now_ms()] * size,
            codec=shape.codec,
        )
        log.append_as_leader(batch, 0, now_ms=now_ms())
    log.roll(now_ms())
    log.update_high_watermark(log.log_end_offset)
    log.close(now_ms())
    end = log.log_end_offset
    return Checkpoints(recovery_point=end, high_watermark=end, is_clean=True)


# Apache Kafka


def refuse_a_used_port(port: int) -> None:
    """Another broker there would answer in the place of ours."""
    with socket.socket() as probe:
        if probe.connect_ex(("localhost", port)) == 0:
            raise SystemExit(f"something listens on port {port} already: choose another by --port")


class Kafka:
    """A broker with one empty partition for each round, into which logs are put while it is down."""

    def __init__(self, data: Path, rounds: int, port: int) -> None:
        self.data = data
        self.port = port
        self.topics = [f"round{number}" for number in range(rounds)]
        self.start()
        topics = [NewTopic(topic, 1, 1, config=self.settings("1.0")) for topic in self.topics]
        try:
            self.create(topics)
            self.wait_for("topics", lambda: all(self.partition(topic).is_dir() for topic in self.topics))
        finally:
            self.stop()

    def create(self, topics: list[NewTopic]) -> None:
        admin = self.admin()
        for created in admin.create_topics(topics).values():
            created.result()

    @staticmethod
    def settings(ratio: str) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "segment.bytes": str(SEGMENT_BYTES),
            "min.cleanable.dirty.ratio": ratio,
        }

    def partition(self, topic: str) -> Path:
        return self.data / "logs" / f"{topic}-0"

    def start(self) -> None:
        settings = ("log.cleaner.threads=1", "log.cleaner.backoff.ms=100", "log.initial.task.delay.ms=100")
        environment = os.environ | {"KAFKA_HEAP_OPTS": "-Xmx1G -Xms1G"}
        command = [PEERS / "start", str(self.data), str(self.port), *settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)

    def stop(self) -> None:
        subprocess.run([PEERS / "stop", str(self.data)], check=True)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": f"localhost:{self.port}"})

    def put(self, source: Path) -> None:
        """Copy a log into every partition, in the place of its empty segment."""
        for topic in self.topics:
            target = self.partition(topic)
            for path in target.glob("0*"):
                path.unlink()
            for path in source.iterdir():
                shutil.copy(path, target / path.name)

    def clean(self, topic: str) -> float:
        """Let Kafka clean one of the logs; returns the seconds that it reports."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        resource.add_incremental_config(
            ConfigEntry("min.cleanable.dirty.ratio", "0.0001", incremental_operation=AlterConfigOpType.SET)
        )
        admin = self.admin()
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result()
        self.wait_for(topic, lambda: topic in self.cleaned())
        return self.cleaned()[topic]

    def cleaned(self) -> dict[str, float]:
        text = (self.data / "server.log").read_text()
        return {found["topic"]: float(found["seconds"].replace(",", "")) for found in CLEANED.finditer(text)}

    def wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        for _ in range(1200):
            if holds():
                return
            time.sleep(0.1)
        raise TimeoutError(f"{what}: see {self.data}/server.log")


# Ours


def our_seconds(source: Path, scratch: Path, checkpoints: Checkpoints) -> tuple[float, int]:
    """Clean a copy; how long it took, and the bytes that are left."""
    path = scratch / "ours" / "bench-0"
    shutil.copytree(source, path)
    log = open_log(path, checkpoints)
    manager = CleanerManager(CleanerConfig(), log.directory.files, {log.partition: log})
    started = time.perf_counter()
    outcome = manager.run(now_ms())
    seconds = time.perf_counter() - started
    assert outcome is not None
    assert outcome.problem is None
    left = log.size_in_bytes
    log.release()
    shutil.rmtree(path.parent)
    return seconds, left


def compare(
    shape: LogShape, megabytes: int, rounds: int, port: int, scratch: Path, table: Table, name: str
) -> None:
    checkpoints = write_log(scratch / "source", shape, megabytes)
    size = sum(path.stat().st_size for path in (scratch / "source").glob("*.log"))
    kafka = Kafka(scratch / "kafka", rounds + WARM_UP_ROUNDS, port)
    kafka.put(scratch / "source")
    kafka.start()
    ours, theirs, left, their_left = [], [], 0, 0
    try:
        for topic in kafka.topics:
            theirs.append(kafka.clean(topic))
            their_left = sum(path.stat().st_size for path in kafka.partition(topic).glob("*.log"))
            seconds, left = our_seconds(scratch / "source", scratch, checkpoints)
            ours.append(seconds)
    finally:
        kafka.stop()
    ours, theirs = ours[WARM_UP_ROUNDS:], theirs[WARM_UP_ROUNDS:]
    for who, seconds_each, bytes_left in (("odradek", ours, left), ("Apache Kafka", theirs, their_left)):
        median = statistics.median(seconds_each)
        table.add_row(
            name if who == "odradek" else "",
            who,
            f"{size / 2**20 / median:,.0f} MB/s",
            " ".join(f"{seconds:.2f}" for seconds in seconds_each),
            f"{size / 2**20:,.0f} to {bytes_left / 2**20:,.1f} MB",
            f"{statistics.median(theirs) / median:.1f}x",
        )
    table.add_section()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the name of a shape of data")
    parser.add_argument("--port", type=int, default=19396)
    arguments = parser.parse_args()
    refuse_a_used_port(arguments.port)
    table = Table(title="Compaction, one thread", title_justify="left")
    for column in ("data", "who", "median", "rounds, s", "log", "faster than Kafka"):
        table.add_column(column, justify="left" if column in ("data", "who") else "right")
    for name, shape in LOG_SHAPES.items():
        if arguments.only in name:
            with tempfile.TemporaryDirectory() as scratch:
                compare(
                    shape,
                    arguments.megabytes,
                    arguments.rounds,
                    arguments.port,
                    Path(scratch),
                    table,
                    name,
                )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
