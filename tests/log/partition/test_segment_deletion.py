"""Segments on their way out: renamed, readable for a while, removed; no replacement is left half done."""

from __future__ import annotations

from pathlib import Path

from log.given_logs import NOW_MS, SMALL, fill, offsets_and_values, open_log
from odradek.log import filenames
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.segment.segment import Segment
from odradek.records.batch import iterate_headers


def test_retention_renames_then_removes_after_the_delay(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(retention_bytes=9000, file_delete_delay_ms=500))
    fill(log, 200)
    log.update_high_watermark(400)
    log.enforce_retention(NOW_MS)
    first = log.segments.first.base_offset
    assert log.log_start_offset == first > 0
    assert log.size_in_bytes <= 9000 + 4096
    deleted = sorted(path.name for path in tmp_path.glob("*.deleted"))
    assert any(name == "0" * 20 + ".log.deleted" for name in deleted)
    assert log.due_garbage(NOW_MS + 499) == []
    assert sorted(log.due_garbage(NOW_MS + 500)) == sorted(f"{tmp_path}/{name}" for name in deleted)
    assert not list(tmp_path.glob("00000000000000000000.snapshot"))


def test_a_reader_of_a_deleted_segment_can_finish(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(retention_ms=0, file_delete_delay_ms=0))
    fill(log, 50)
    log.update_high_watermark(100)
    part = log.read(0, 10**6).range
    assert part is not None
    expected = part.read()
    log.enforce_retention(NOW_MS + 10**9)
    for path in log.due_garbage(NOW_MS + 10**9):
        Path(path).unlink()
    assert part.read() == expected


def a_copy_of(log: PartitionLog, segment: Segment) -> Segment:
    """What a cleaner that drops nothing would put in a segment's place."""
    copy = Segment.create(
        log.directory,
        segment.base_offset,
        index_interval_bytes=log.config.index_interval_bytes,
        now_ms=NOW_MS,
        state=filenames.CLEANED,
    )
    batches = Path(segment.log.path).read_bytes()
    start = copy.log.append(batches)
    for position, header in iterate_headers(batches):
        copy.note(
            start + position,
            header.size_in_bytes,
            header.base_offset,
            header.last_offset,
            header.max_timestamp_ms,
        )
    copy.seal()
    return copy


def test_what_cuts_the_log_finishes_a_replacement_first(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 100)
    before = offsets_and_values(log)
    old = list(log.segments)[:2]
    steps = log.begin_replacement(old, [a_copy_of(log, one) for one in old], now_ms=NOW_MS)
    assert offsets_and_values(log) == before
    assert len(list(tmp_path.glob("*.log.swap"))) == 2

    log.truncate_to(50, now_ms=NOW_MS)

    assert not list(tmp_path.glob("*.swap"))
    assert list(steps) == []
    assert offsets_and_values(log) == before[:50]
    replaced = {str(tmp_path / f"{one.base_offset:020d}.log.deleted") for one in old}
    assert replaced <= set(log.due_garbage(NOW_MS + log.config.file_delete_delay_ms))
