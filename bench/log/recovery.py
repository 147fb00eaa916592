"""Recovery after kill -9, ours beside Apache Kafka's: same bytes, recovery point 0, every CRC, one thread.

Kafka writes the log once. Then, alternating: Kafka starts on it (its own log line says how long loading took,
so that the start of the JVM does not count) and is killed; we load a copy of it. Both find the bytes in the
page cache.

    python bench/log/recovery.py [--megabytes 1000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache
from odradek.log.recovery.log_loader import load_log

PEERS = Path(__file__).resolve().parents[1] / "peers"
PORT = 19790
TOPIC = "bench"
LOADED = re.compile(r"Completed load of Log\(dir=\S*bench-0\S*.*? in (\d+)ms")
RECORD_BYTES = 100


def peer(script: str, *arguments: str) -> None:
    environment = os.environ | {"KAFKA_HEAP_OPTS": "-Xmx1G -Xms1G"}
    subprocess.run([PEERS / script, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)


def start_kafka(data: Path) -> None:
    peer(
        "start", str(data), str(PORT), "num.recovery.threads.per.data.dir=1", "auto.create.topics.enable=true"
    )


def write_log(data: Path, megabytes: int) -> None:
    """Let Kafka write one partition through its own producer."""
    start_kafka(data)
    count = megabytes * 1_000_000 // RECORD_BYTES
    properties = f"bootstrap.servers=localhost:{PORT}"
    peer(
        "run-class",
        "ProducerPerformance",
        *("--topic", TOPIC, "--num-records", str(count), "--record-size", str(RECORD_BYTES)),
        *("--throughput", "-1", "--producer-props", properties, "batch.size=16384", "linger.ms=5"),
    )
    peer("stop", str(data), "KILL")


def forget_what_was_synced(logs: Path) -> None:
    """An unclean stop, recovery point 0: neither side may trust anything but the log itself."""
    (logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    (logs / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    for snapshot in (logs / f"{TOPIC}-0").glob("*.snapshot"):
        snapshot.unlink()


def kafka_seconds(data: Path) -> float:
    """Start Kafka on the log once; returns the load time that it reports."""
    forget_what_was_synced(data / "logs")
    start_kafka(data)
    peer("stop", str(data), "KILL")
    found = LOADED.search((data / "server.log").read_text())
    if found is None:
        raise SystemExit(f"Kafka's log does not say how long it loaded: {data}/server.log")
    return int(found[1]) / 1000


def our_seconds(partition: Path) -> float:
    """One load of the same bytes in this thread."""
    for snapshot in partition.glob("*.snapshot"):
        snapshot.unlink()
    handles = HandleCache(FileSystem(), 100)
    started = time.perf_counter()
    log = load_log(
        TopicPartition(TOPIC, 0), str(partition), LogConfig(), handles, now_ms=time.time_ns() // 1_000_000
    )
    seconds = time.perf_counter() - started
    assert log.log_end_offset > 0
    log.release()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        data, copy = Path(scratch) / "kafka", Path(scratch) / "ours" / f"{TOPIC}-0"
        write_log(data, arguments.megabytes)
        shutil.copytree(data / "logs" / f"{TOPIC}-0", copy)
        size = sum(path.stat().st_size for path in copy.glob("*.log"))
        kafka, ours = [], []
        for _ in range(arguments.rounds):
            kafka.append(kafka_seconds(data))
            ours.append(our_seconds(copy))
    table = Table(title=f"Recovery of {size / 1e9:.2f} GB, one thread", title_justify="left")
    for column in ("who", "median s", "s per GB", "rounds", "faster than Kafka"):
        table.add_column(column, justify="left" if column == "who" else "right")
    for name, seconds in (("odradek", ours), ("Apache Kafka", kafka)):
        median = statistics.median(seconds)
        ratio = statistics.median(kafka) / median
        rounds = " ".join(f"{value:.2f}" for value in seconds)
        table.add_row(name, f"{median:.2f}", f"{median / size * 1e9:.2f}", rounds, f"{ratio:.1f}x")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
