"""Directories that Apache Kafka wrote: we read the same records, and our recovery leaves every byte alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, a_batch, after_crash, open_log, read_all
from odradek.log.config import LogConfig
from odradek.log.recovery.log_loader import Checkpoints
from odradek.log.recovery.segment_scan import scan_segment

SEGMENTS = Path(__file__).parent.parent / "data" / "segments"
DIRECTORIES = sorted(path.parent.name for path in SEGMENTS.glob("*/leader-epoch-checkpoint"))
COMPACTED = LogConfig(cleanup_policy=("compact",))


def a_copy(tmp_path: Path, name: str) -> Path:
    target = tmp_path / "log"
    shutil.copytree(SEGMENTS / name, target)
    return target


def kafkas_files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.suffix != ".tmp"}


def test_there_are_directories_to_test() -> None:
    assert len(DIRECTORIES) >= 3


@pytest.mark.parametrize("name", DIRECTORIES)
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_healthy_directory_is_loaded_and_its_log_left_alone(
    tmp_path: Path, name: str, is_clean: bool
) -> None:
    path = a_copy(tmp_path, name)
    before = kafkas_files(path)
    log = open_log(path, COMPACTED, checkpoints=Checkpoints(is_clean=is_clean))
    after = kafkas_files(path)
    unchanged = {file: content for file, content in before.items() if "index" not in file}
    assert {file: after[file] for file in unchanged} == unchanged
    if is_clean:
        assert after == before
    expected = json.loads((path / "expected.json").read_text())
    assert log.log_end_offset > 0
    assert [record.offset for record in read_all(log)]
    assert expected
    assert log.topic_id is not None


@pytest.mark.parametrize("name", DIRECTORIES)
def test_a_scan_finds_the_producer_state_that_kafka_wrote_down(tmp_path: Path, name: str) -> None:
    path = a_copy(tmp_path, name)
    by_kafka = open_log(path, COMPACTED, checkpoints=Checkpoints(is_clean=True), now_ms=0)
    for snapshot in path.glob("*.snapshot"):
        snapshot.unlink()
    by_us = open_log(path, COMPACTED, checkpoints=after_crash(), now_ms=0)
    assert by_us.log_end_offset == by_kafka.log_end_offset
    theirs, ours = by_kafka.producers.entries, by_us.producers.entries
    for producer_id, entry in ours.items():
        assert entry.producer_epoch == theirs[producer_id].producer_epoch
        assert entry.last_sequence == theirs[producer_id].last_sequence
        assert entry.current_txn_first_offset == theirs[producer_id].current_txn_first_offset
        assert entry.coordinator_epoch == theirs[producer_id].coordinator_epoch
        assert entry.last_timestamp_ms == theirs[producer_id].last_timestamp_ms


@pytest.mark.parametrize("name", DIRECTORIES)
def test_kafkas_index_entries_point_where_ours_would(tmp_path: Path, name: str) -> None:
    path = a_copy(tmp_path, name)
    log = open_log(path, COMPACTED, checkpoints=Checkpoints(is_clean=True))
    for segment in log.segments:
        scan = scan_segment(segment)
        assert scan.problem is None
        ends = {span.last_offset: span.position for span in segment.walk()}
        assert all(entry.offset in ends for entry in segment.offset_index)
        for offset in range(segment.base_offset, scan.next_offset):
            assert segment.position_of(offset) is not None
        assert segment.max_timestamp().timestamp_ms == scan.greatest.timestamp_ms


@pytest.mark.parametrize("name", DIRECTORIES)
def test_the_log_can_be_continued(tmp_path: Path, name: str) -> None:
    path = a_copy(tmp_path, name)
    log = open_log(path, COMPACTED, checkpoints=Checkpoints(is_clean=True))
    end = log.log_end_offset
    epoch = log.epochs.latest + 1
    assert log.append_as_leader(a_batch(3), epoch, now_ms=NOW_MS).base_offset == end
    log.close(NOW_MS)
    again = open_log(path, COMPACTED, checkpoints=after_crash(high_watermark=end + 3))
    assert again.log_end_offset == end + 3
    assert again.epochs.latest == epoch
