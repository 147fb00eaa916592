"""Kafka's own DumpLogSegments accepts what we write: all codecs, indexes, transactions, snapshots."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, SMALL, a_batch, a_marker, open_log
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.partition_log import PartitionLog
from odradek.records.compression import Codec

RUN_CLASS = Path(__file__).resolve().parents[2] / "bench" / "peers" / "run-class"

pytestmark = [pytest.mark.java, pytest.mark.slow]


def dump(*arguments: str) -> str:
    command = [str(RUN_CLASS), "org.apache.kafka.tools.DumpLogSegments", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def a_log_of_everything(path: Path) -> PartitionLog:
    log = open_log(path, SMALL.replace(internal_segment_bytes=8000))
    for number in range(150):
        batch = a_batch(
            1 + number % 4,
            value=b"v%d" % number + b"x" * 100,
            timestamp_ms=NOW_MS + number,
            codec=Codec(number % 5),
            producer_id=5,
            producer_epoch=1,
            base_sequence=sum(1 + n % 4 for n in range(number)),
        )
        log.append_as_leader(batch, number // 50, now_ms=NOW_MS)
        if number % 10 == 0:
            sequence = number // 10 * 2
            txn = a_batch(2, producer_id=8, producer_epoch=0, base_sequence=sequence, is_transactional=True)
            log.append_as_leader(txn, number // 50, now_ms=NOW_MS)
            marker = a_marker(8, is_commit=number % 20 == 0)
            log.append_as_leader(marker, number // 50, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW_MS)
    return log


def test_logs_indexes_transactions_and_snapshots_are_accepted(tmp_path: Path) -> None:
    log = a_log_of_everything(tmp_path / "log")
    logs = sorted((tmp_path / "log").glob("*.log"))
    assert len(logs) > 2

    printed = dump("--files", ",".join(map(str, logs)), "--deep-iteration", "--print-data-log")
    offsets = [int(found) for found in re.findall(r"^\| offset: (\d+)", printed, re.MULTILINE)]
    assert offsets == list(range(log.log_end_offset))
    assert "isvalid: false" not in printed
    assert printed.count("endTxnMarker") == 15

    indexes = sorted([*(tmp_path / "log").glob("*.index"), *(tmp_path / "log").glob("*.timeindex")])
    checked = dump("--files", ",".join(map(str, indexes)), "--index-sanity-check")
    assert checked.count("passed sanity check") == len(indexes)
    walked = dump("--files", ",".join(map(str, indexes)), "--verify-index-only")
    assert not re.search(r"[Mm]ismatch|Indexed offset|out of order|Found", walked)

    rest = sorted([*(tmp_path / "log").glob("*.txnindex"), *(tmp_path / "log").glob("*.snapshot")])
    reported = dump("--files", ",".join(map(str, rest)))
    aborted = re.findall(r"producerId: 8 firstOffset: (\d+) lastOffset: (\d+)", reported)
    assert len(aborted) == 7
    assert "producerId: 5 producerEpoch: 1" in reported
