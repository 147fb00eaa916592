"""Memory and file handles of 10,000 open partitions, and how long they take to open and to close."""

from __future__ import annotations

import os
import sys
import tempfile
import time

import psutil
from rich.console import Console
from rich.table import Table

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.records.builder import build_batch
from odradek.records.record import Record

PARTITIONS = 10_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def a_manager(directory: str) -> LogManager:
    return LogManager([directory], broker_id=0, cluster_id="bench")


def main() -> None:
    process = psutil.Process()
    config = LogConfig()
    batch = bytes(build_batch([Record(0, now_ms(), b"key", bytes(100))]))
    rows: list[tuple[str, float, int, int]] = []

    def note(what: str, started: float) -> None:
        rows.append((what, time.perf_counter() - started, process.memory_info().rss, process.num_fds()))

    with tempfile.TemporaryDirectory() as scratch:
        note("nothing", time.perf_counter())
        started = time.perf_counter()
        manager = a_manager(scratch)
        manager.start(now_ms(), lambda topic: config)
        for number in range(PARTITIONS):
            manager.get_or_create(
                TopicPartition(f"topic-{number // 100}", number % 100), config, now_ms=now_ms()
            )
        note(f"{PARTITIONS} partitions made", started)
        started = time.perf_counter()
        for log in manager.logs.values():
            log.append_as_leader(bytearray(batch), 0, now_ms=now_ms())
        note("a batch appended to each", started)
        started = time.perf_counter()
        manager.stop(now_ms())
        note("closed", started)
        child = [sys.executable, __file__, "open", scratch]
        os.spawnv(os.P_WAIT, sys.executable, child)
    _show("10,000 partitions in one process", rows)


def open_again(directory: str) -> None:
    """In a fresh process: what a broker pays that starts on 10,000 partitions."""
    process = psutil.Process()
    before = process.memory_info().rss
    started = time.perf_counter()
    manager = a_manager(directory)
    config = LogConfig()
    manager.start(now_ms(), lambda topic: config)
    seconds = time.perf_counter() - started
    after = process.memory_info().rss
    per_partition = (after - before) / len(manager.logs)
    _show(
        f"a clean start: {per_partition:,.0f} bytes for each open partition",
        [("opened", seconds, after, process.num_fds())],
    )
    manager.abandon()


def _show(title: str, rows: list[tuple[str, float, int, int]]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("what", "seconds", "resident MB", "file handles"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for what, seconds, memory, handles in rows:
        table.add_row(what, f"{seconds:.2f}", f"{memory / 1e6:.1f}", str(handles))
    Console().print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["open"]:
        open_again(sys.argv[2])
    else:
        main()
