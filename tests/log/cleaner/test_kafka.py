"""Beside Apache Kafka: its cleaner keeps the same of the same log, and its tools accept what ours leaves."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from log.cleaner.given_compaction import (
    COMPACTED,
    Left,
    append,
    batches_of,
    compacted_log,
    end_transaction,
    manager_of,
    roll,
)
from log.given_logs import PARTITION, after_clean_stop, open_log
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.log_loader import Checkpoints
from odradek.records.compression import Codec

pytestmark = [pytest.mark.java, pytest.mark.slow]

PEERS = Path(__file__).resolve().parents[3] / "bench" / "peers"
PORT = 19392
NOW_MS = int(time.time() * 1000)
CONFIG = COMPACTED.replace(internal_segment_bytes=1 << 20)


def write_everything(log: PartitionLog, seed: int, batches: int) -> None:
    """All codecs, tombstones, idempotent producers, commits and aborts, in several segments."""
    rng = random.Random(seed)
    for number in range(batches):
        producer_id = rng.choice([-1, 5, 8, 9])
        pairs = [
            (b"key%d" % rng.randrange(150), None if rng.random() < 0.1 else b"%d" % number * 9)
            for _ in range(rng.randrange(1, 8))
        ]
        known = log.producers.entries.get(producer_id)
        sequence = known.last_sequence + 1 if known is not None else 0
        append(
            log,
            pairs,
            codec=Codec(number % 5),
            producer=(producer_id, 0, sequence) if producer_id >= 0 else (-1, -1, -1),
            is_transactional=producer_id >= 8,
            now_ms=NOW_MS + number,
        )
        if producer_id >= 8 and rng.random() < 0.4:
            end_transaction(log, producer_id, is_commit=rng.random() < 0.5)
        if number % 60 == 59:
            roll(log)
    for producer_id in (8, 9):
        end_transaction(log, producer_id, is_commit=False)
    roll(log)
    log.close(NOW_MS)


class Kafka:
    """A broker whose partition is written by us while it is down."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.partition = data / "logs" / str(PARTITION)
        self.start()
        try:
            self.create_topic()
            until(self.partition.is_dir)
        finally:
            self.stop()

    def create_topic(self) -> None:
        settings = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.0001",
            "delete.retention.ms": str(COMPACTED.delete_retention_ms),
        }
        admin = AdminClient({"bootstrap.servers": f"localhost:{PORT}"})
        admin.create_topics([NewTopic(PARTITION.topic, 1, 1, config=settings)])[PARTITION.topic].result()

    def start(self) -> None:
        settings = ("log.cleaner.threads=1", "log.cleaner.backoff.ms=200", "log.initial.task.delay.ms=100")
        command = [PEERS / "start", str(self.data), str(PORT), *settings]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        subprocess.run([PEERS / "stop", str(self.data)], check=True)

    def clean(self) -> None:
        self.start()
        try:
            until(lambda: f"cleaned log {PARTITION} " in (self.data / "server.log").read_text())
        finally:
            self.stop()


def until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise TimeoutError


def reported(left: Left) -> tuple[object, ...]:
    header = left.header
    return (
        header.base_offset,
        header.last_offset,
        (header.producer_id, header.producer_epoch, header.base_sequence),
        header.codec,
        header.is_transactional,
        header.is_control,
        header.has_delete_horizon,
        header.max_timestamp_ms,
        [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in left.records],
    )


def a_twin(kafka: Kafka, path: Path) -> Path:
    """A copy of Kafka's partition, and of what its cleaner knows."""
    path.mkdir()
    shutil.copytree(kafka.partition, path / str(PARTITION))
    shutil.copy(kafka.data / "logs" / "cleaner-offset-checkpoint", path)
    return path / str(PARTITION)


def test_kafkas_cleaner_keeps_the_same_time_and_again(tmp_path: Path) -> None:
    """First data goes, then horizons are set on markers, then tombstones and markers go."""
    kafka = Kafka(tmp_path / "kafka")
    markers = []
    for number in range(3):
        known = Checkpoints(is_clean=True)
        writer = open_log(kafka.partition, CONFIG, checkpoints=known)
        writer.update_high_watermark(writer.log_end_offset)
        write_everything(writer, number, 400 if number == 0 else 30)
        known = after_clean_stop(writer)
        twin = a_twin(kafka, tmp_path / f"ours{number}")

        kafka.clean()
        theirs = open_log(kafka.partition, CONFIG, checkpoints=known)
        ours = open_log(twin, CONFIG, checkpoints=known)
        outcome = manager_of(ours).run(int(time.time() * 1000))

        assert outcome is not None
        assert outcome.problem is None
        kept = [reported(left) for left in batches_of(ours) if left.records]
        assert kept == [reported(left) for left in batches_of(theirs) if left.records]
        aborted = [list(segment.txn_index) for segment in ours.segments if segment.size]
        assert aborted == [list(segment.txn_index) for segment in theirs.segments if segment.size]
        assert ours.producers.entries.keys() == theirs.producers.entries.keys()
        markers.append(sum(1 for left in batches_of(ours) if left.header.is_control and left.records))
        theirs.release()
    assert markers[2] < markers[0]


def dump(*arguments: str) -> str:
    command = [PEERS / "run-class", "DumpLogSegments", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_dump_log_segments_accepts_a_cleaned_log(tmp_path: Path) -> None:
    written = compacted_log(tmp_path, internal_segment_bytes=1 << 20)
    write_everything(written, 1, 400)
    log = open_log(written.directory.path, CONFIG, checkpoints=after_clean_stop(written))
    outcome = manager_of(log).run(NOW_MS)
    assert outcome is not None
    log.close(NOW_MS)

    directory = Path(log.directory.path)
    logs = ",".join(map(str, sorted(directory.glob("*.log"))))
    printed = dump("--files", logs, "--deep-iteration", "--print-data-log")
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == [record.offset for left in batches_of(log) for record in left.records]
    assert "isvalid: false" not in printed
    assert "deleteHorizonMs: OptionalLong[" in printed

    indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
    indexes = [index for index in indexes if index.stat().st_size]
    checked = dump("--files", ",".join(map(str, indexes)), "--index-sanity-check")
    assert checked.count("passed sanity check") == len(indexes)
    walked = dump("--files", ",".join(map(str, indexes)), "--verify-index-only")
    assert not re.search(r"[Mm]ismatch|Indexed offset|out of order|Found", walked)
    aborted = dump("--files", ",".join(map(str, sorted(directory.glob("*.txnindex")))))
    assert "producerId: 8" in aborted
