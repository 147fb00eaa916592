from __future__ import annotations

from pathlib import Path

import pytest

from log.given_logs import NOW_MS, a_batch
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, PartitionDirectory
from odradek.log.segment.offset_index import OffsetPosition
from odradek.log.segment.segment import Segment
from odradek.log.segment.time_index import TimestampOffset
from odradek.records.batch import read_header
from odradek.records.errors import CorruptBatch


def a_segment(path: Path, *, base_offset: int = 100, interval: int = 1000) -> Segment:
    directory = PartitionDirectory(str(path), HandleCache(FileSystem(), 16))
    return Segment.create(directory, base_offset, index_interval_bytes=interval, now_ms=NOW_MS)


def add(segment: Segment, offset: int, *, count: int = 1, size: int = 600, timestamp_ms: int = 0) -> int:
    batch = a_batch(count, base_offset=offset, value=b"x", timestamp_ms=timestamp_ms)
    padding = size - len(batch)
    batch = a_batch(count, base_offset=offset, value=b"x" * (padding + 1), timestamp_ms=timestamp_ms)
    header = read_header(batch)
    return segment.append(batch, offset, header.last_offset, header.max_timestamp_ms)


def test_the_index_gets_one_entry_per_interval(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    positions = [add(segment, offset, timestamp_ms=offset) for offset in range(100, 105)]
    assert list(segment.offset_index) == [
        OffsetPosition(102, positions[2]),
        OffsetPosition(104, positions[4]),
    ]
    assert list(segment.time_index) == [TimestampOffset(102, 102), TimestampOffset(104, 104)]


def test_an_offset_is_found_wherever_in_a_batch_it_lies(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    positions = {offset: add(segment, offset, count=3) for offset in range(100, 160, 3)}
    segment.seal()
    for offset in range(100, 160):
        assert segment.position_of(offset) == positions[100 + (offset - 100) // 3 * 3]
    assert segment.position_of(160) is None
    assert segment.position_of(0) == 0


def test_the_last_sixteen_batches_are_known_until_they_may_have_gone(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    assert segment.known_position(100) == -1
    positions = {offset: add(segment, offset, count=2) for offset in range(100, 140, 2)}

    assert [segment.known_position(offset) for offset in range(100, 108)] == [-1] * 8
    assert all(segment.known_position(offset) == positions[offset] for offset in range(108, 140, 2))
    assert segment.known_position(-1) == segment.known_position(109) == segment.known_position(140) == -1

    segment.truncate_to(130)
    assert segment.known_position(128) == segment.known_position(130) == -1
    assert segment.position_of(128) == positions[128]
    assert add(segment, 130) == segment.known_position(130) == positions[130]


def test_the_greatest_timestamp_is_that_of_the_first_batch_to_have_it(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    assert segment.max_timestamp() == TimestampOffset(-1, 100)
    for offset, timestamp_ms in ((100, 5), (102, 9), (104, 9), (106, 7)):
        add(segment, offset, count=2, timestamp_ms=timestamp_ms)
    assert segment.max_timestamp() == TimestampOffset(9, 103)

    segment.truncate_to(102)
    assert segment.max_timestamp() == TimestampOffset(5, 101)


def test_gaps_left_by_compaction_lead_to_the_next_batch(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    add(segment, 100)
    second = add(segment, 150)
    segment.seal()
    assert segment.position_of(120) == second


def test_a_lying_index_costs_only_time(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, interval=0)
    positions = [add(segment, offset) for offset in range(100, 110)]
    segment.seal()
    index = tmp_path / "00000000000000000100.index"
    damaged = bytearray(index.read_bytes())
    damaged[8 * 4 + 7] ^= 1  # one entry points one byte away
    damaged[8 * 6 + 4 : 8 * 6 + 8] = positions[9].to_bytes(4, "big")  # another one to a later batch
    index.write_bytes(damaged)
    assert [segment.position_of(offset) for offset in range(100, 110)] == positions


def test_truncation_cuts_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, interval=0)
    positions = [add(segment, offset, count=2, timestamp_ms=offset) for offset in range(100, 120, 2)]
    dropped = segment.truncate_to(111)
    assert segment.size == positions[5]
    assert dropped == 600 * 5 or dropped > 0
    assert segment.next_offset() == 110
    assert segment.max_timestamp() == TimestampOffset(108, 109)
    assert all(entry.offset < 111 for entry in segment.offset_index)
    assert add(segment, 110, count=2) == positions[5]


def test_the_greatest_timestamp_is_found_again_from_the_files(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, interval=700)
    for offset, timestamp_ms in [(100, 5), (101, 900), (102, 7), (103, 8), (104, 950), (105, 1)]:
        add(segment, offset, timestamp_ms=timestamp_ms)
    expected = segment.max_timestamp()
    assert expected == TimestampOffset(950, 104)
    segment.write_pending()
    sizes = {file.suffix: file.stat().st_size for file in tmp_path.iterdir()}
    again = Segment(segment.directory, 100, index_interval_bytes=700, created_ms=0, sizes=sizes)
    assert again.max_timestamp() == expected
    assert again.first_timestamp_ms() == 5


def test_a_cut_time_index_does_not_hide_the_greatest_timestamp(tmp_path: Path) -> None:
    segment = a_segment(tmp_path, interval=0)
    for offset in range(100, 120):
        add(segment, offset, timestamp_ms=offset)
    segment.seal()
    times = tmp_path / "00000000000000000100.timeindex"
    times.write_bytes(times.read_bytes()[: 12 * 3])
    sizes = {file.suffix: file.stat().st_size for file in tmp_path.iterdir()}
    again = Segment(segment.directory, 100, index_interval_bytes=0, created_ms=0, sizes=sizes)
    assert again.max_timestamp() == TimestampOffset(119, 119)


def test_walking_over_bytes_that_are_no_batch_raises_where(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    end = add(segment, 100) + 600
    segment.log.append(b"\0" * 100)
    walk = segment.walk()
    assert next(walk).base_offset == 100
    with pytest.raises(CorruptBatch) as raised:
        next(walk)
    assert raised.value.position == segment.span_at(0).end_position
    assert end > 0


def test_renaming_moves_every_file_and_reading_continues(tmp_path: Path) -> None:
    segment = a_segment(tmp_path)
    add(segment, 100)
    segment.seal()
    segment.rename(".deleted")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"00000000000000000100.{kind}.deleted" for kind in ("index", "log", "timeindex")
    ]
    segment.close()
    assert segment.position_of(100) == 0
