"""Forking a gigabyte: hard links for closed segments, a copy of the active one only."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.log.offline.fork import fork
from odradek.records.builder import build_batch
from odradek.records.record import Record

NOW_MS = 1_700_000_000_000
SEGMENT_BYTES = 64 * 1024 * 1024
ROUNDS = 7


def main(gigabytes: float = 1.0) -> None:
    config = LogConfig(segment_bytes=SEGMENT_BYTES)
    batch = bytes(build_batch([Record(n, NOW_MS, None, bytes(1000)) for n in range(900)]))
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch) / "source", Path(scratch) / "fork"
        manager = LogManager([str(source)], broker_id=0, cluster_id="bench")
        manager.start(NOW_MS, lambda topic: config)
        log = manager.get_or_create(TopicPartition("bench", 0), config, now_ms=NOW_MS)
        while log.size_in_bytes < gigabytes * 1e9:
            log.append_as_leader(bytearray(batch), 0, now_ms=NOW_MS)
        log.roll(NOW_MS)
        log.append_as_leader(bytearray(batch), 0, now_ms=NOW_MS)
        manager.stop(NOW_MS)
        seconds = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            report = fork(str(source), str(target))
            seconds.append(time.perf_counter() - started)
            shutil.rmtree(target)
    median_ms = statistics.median(seconds) * 1000
    print(
        f"fork of {report.linked_bytes / 1e9:.2f} GB linked, {report.linked_files} logs: {median_ms:.1f} ms"
    )


if __name__ == "__main__":
    main()
