"""Appending batches to one partition, reading it by offset, and how lookups grow with segments and entries.

The limit beside it: a bare loop that writes the same batches to a file, and one that reads the same ranges.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import load_log
from odradek.records.builder import build_batch
from odradek.records.record import Record

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Measured, Report, measure

NOW_MS = 1_700_000_000_000
BATCHES = {
    "150 records of 100 B": (150, 100),
    "60 records of 1000 B": (60, 1000),
    "1 record of 100 B": (1, 100),
}
ENTRIES = (1_000, 10_000, 100_000)
SEGMENTS = (10, 100, 1_000)
BATCHES_PER_SEGMENT = 20


def a_log(directory: Path, config: LogConfig | None = None) -> PartitionLog:
    directory.mkdir(parents=True)
    handles = HandleCache(FileSystem(), 1000)
    return load_log(TopicPartition("bench", 0), str(directory), config or LogConfig(), handles, now_ms=NOW_MS)


def a_batch(records: int, size: int) -> bytes:
    return bytes(build_batch([Record(n, NOW_MS, None, bytes(size)) for n in range(records)]))


def appending(scratch: Path, report: Report) -> None:
    for name, (records, size) in BATCHES.items():
        batch = a_batch(records, size)
        log = a_log(scratch / name.replace(" ", "-"))
        bare = os.open(scratch / "bare", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        position = 0

        def append(log: PartitionLog = log, batch: bytes = batch) -> None:
            log.append_as_leader(bytearray(batch), 0, now_ms=NOW_MS)

        def write(bare: int = bare, batch: bytes = batch) -> None:
            nonlocal position
            position += os.pwrite(bare, batch, position)

        measured = measure({"odradek": append, "bare write": write})
        os.close(bare)
        log.release()
        report.add(f"append {name} ({len(batch)} B)", measured, items=len(batch), unit="B")


def reading(scratch: Path, report: Report) -> None:
    log = a_log(scratch / "reading")
    batch = a_batch(150, 100)
    for _ in range(5000):
        log.append_as_leader(bytearray(batch), 0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    rng = random.Random(0)

    def read() -> bytes:
        found = log.read(rng.randrange(log.log_end_offset), 1 << 20).range
        assert found is not None
        return found.read()

    def find() -> object:
        return log.read(rng.randrange(log.log_end_offset), 1 << 20)

    report.add("read 1 MiB at a random offset", measure({"odradek": read}), items=1 << 20, unit="B")
    report.add("find 1 MiB at a random offset (a file range)", measure({"odradek": find}))
    log.release()


def lookups(scratch: Path, report: Report) -> None:
    """Index entries grow 10 and 100 times, then segments do; the cost must grow like a logarithm."""
    batch = a_batch(1, 100)
    for count in ENTRIES:
        config = LogConfig(index_interval_bytes=100)  # less than a batch: an entry for each
        measured = _lookup(scratch / f"entries-{count}", config, batch, count)
        report.add(f"lookup in one segment, {count:,} index entries", measured)
    for count in SEGMENTS:
        config = LogConfig(segment_bytes=len(batch) * BATCHES_PER_SEGMENT)
        measured = _lookup(scratch / f"segments-{count}", config, batch, count * BATCHES_PER_SEGMENT)
        report.add(f"lookup over {count:,} segments", measured)


def _lookup(directory: Path, config: LogConfig, batch: bytes, count: int) -> list[Measured]:
    log = a_log(directory, config)
    for _ in range(count):
        log.append_as_leader(bytearray(batch), 0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    # Entries that wait in memory would flatter the small case.
    log.segments.active.offset_index.write_pending()
    rng = random.Random(0)
    measured = measure({"odradek": lambda: log.read(rng.randrange(count), 1)})
    log.release()
    shutil.rmtree(directory)
    return measured


def main() -> None:
    report = Report("One partition on disk")
    with tempfile.TemporaryDirectory() as scratch:
        appending(Path(scratch), report)
        reading(Path(scratch), report)
        lookups(Path(scratch), report)
    report.show()


if __name__ == "__main__":
    main()
