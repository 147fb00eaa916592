"""The offset and time indexes, over real files."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.log.errors import DamagedIndex
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, LogFile, PartitionDirectory
from odradek.log.segment.offset_index import OffsetIndex, OffsetPosition
from odradek.log.segment.time_index import TimeIndex, TimestampOffset
from odradek.log.segment.txn_index import AbortedTxn, TxnIndex


def a_file(path: Path, name: str, *, is_created: bool = True) -> LogFile:
    directory = PartitionDirectory(str(path), HandleCache(FileSystem(), 8))
    file = LogFile(directory, name, 0)
    if is_created:
        file.create()
    return file


def reopened(file: LogFile) -> LogFile:
    return LogFile(file.directory, file.name, Path(file.path).stat().st_size)


def test_entries_are_kafkas_bytes(tmp_path: Path) -> None:
    offsets = OffsetIndex(a_file(tmp_path, "o"), base_offset=100)
    offsets.append(107, 4200)
    offsets.write_pending()
    times = TimeIndex(a_file(tmp_path, "t"), base_offset=100)
    times.append_if_later(1_700_000_000_000, 107)
    times.write_pending()
    aborted = TxnIndex(a_file(tmp_path, "x", is_created=False), is_created=False)
    aborted.append(AbortedTxn(1, 0, 200, 201))

    assert (tmp_path / "o").read_bytes() == bytes.fromhex("0000000700001068")
    assert (tmp_path / "t").read_bytes() == bytes.fromhex("0000018bcfe5680000000007")
    assert (tmp_path / "x").read_bytes() == bytes.fromhex(
        "0000 0000000000000001 0000000000000000 00000000000000c8 00000000000000c9".replace(" ", "")
    )


@settings(max_examples=40, deadline=None)
@given(
    gaps=st.lists(st.integers(1, 50), min_size=1, max_size=1500),
    written=st.integers(0, 1500),
    probes=st.lists(st.integers(0, 80_000), max_size=30),
)
def test_lookup_finds_the_last_entry_not_above(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], written: int, probes: list[int]
) -> None:
    index = OffsetIndex(a_file(tmp_path_factory.mktemp("index"), "o"), base_offset=1000)
    offset, positions = 1000, []
    offsets = []
    for number, gap in enumerate(gaps):
        offset += gap
        index.append(offset, number * 10)
        offsets.append(offset)
        positions.append(number * 10)
        if number == written:
            index.write_pending()
    for probe in probes:
        at = bisect_right(offsets, 1000 + probe) - 1
        expected = OffsetPosition(offsets[at], positions[at]) if at >= 0 else None
        assert index.lookup(1000 + probe) == expected
        at = bisect_right(positions, probe) - 1
        assert index.lookup_position(probe) == OffsetPosition(offsets[at], positions[at])
    assert list(index) == list(map(OffsetPosition, offsets, positions))


def test_the_time_index_only_rises(tmp_path: Path) -> None:
    times = TimeIndex(a_file(tmp_path, "t"), base_offset=0)
    for timestamp_ms, offset in [(100, 1), (100, 2), (50, 3), (200, 4), (-1, 5)]:
        times.append_if_later(timestamp_ms, offset)
    assert list(times) == [TimestampOffset(100, 1), TimestampOffset(200, 4)]
    assert times.lookup_before(100) is None
    assert times.lookup_before(101) == TimestampOffset(100, 1)
    assert times.lookup_before(201) == TimestampOffset(200, 4)


def test_truncation_drops_the_offset_and_what_follows(tmp_path: Path) -> None:
    offsets = OffsetIndex(a_file(tmp_path, "o"), base_offset=0)
    for offset in range(10, 100, 10):
        offsets.append(offset, offset)
    offsets.truncate_to(50)
    assert [entry.offset for entry in offsets] == [10, 20, 30, 40]
    offsets.append(45, 45)
    assert offsets.last() == OffsetPosition(45, 45)
    offsets.write_pending()
    assert len(OffsetIndex(reopened(offsets.file), 0)) == 5


def test_indexes_are_full_where_kafkas_are(tmp_path: Path) -> None:
    offsets = OffsetIndex(a_file(tmp_path, "o"), base_offset=0)
    times = TimeIndex(a_file(tmp_path, "t"), base_offset=0)
    for number in range(1, 4):
        offsets.append(number, number)
        times.append_if_later(number, number)
    assert offsets.is_full(31)  # room for three entries of 8 bytes
    assert not offsets.is_full(32)
    assert times.is_full(48)  # four entries of 12 bytes, one is kept for the end
    assert not times.is_full(60)


def test_a_file_that_is_no_number_of_entries_is_damaged(tmp_path: Path) -> None:
    file = a_file(tmp_path, "o")
    file.append(b"\0" * 9)
    with pytest.raises(DamagedIndex):
        OffsetIndex(file, 0).check_shape(log_size=100)
    with pytest.raises(DamagedIndex):
        TimeIndex(file, 0).check_shape()
    with pytest.raises(DamagedIndex):
        TxnIndex(file, is_created=True).check(0)


def test_an_entry_beyond_the_log_is_damage(tmp_path: Path) -> None:
    offsets = OffsetIndex(a_file(tmp_path, "o"), base_offset=0)
    offsets.append(5, 500)
    offsets.write_pending()
    OffsetIndex(reopened(offsets.file), 0).check_shape(log_size=501)
    with pytest.raises(DamagedIndex):
        OffsetIndex(reopened(offsets.file), 0).check_shape(log_size=500)


def test_a_shortened_file_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    offsets = OffsetIndex(a_file(tmp_path, "o"), base_offset=0)
    for number in range(1, 600):
        offsets.append(number, number)
    offsets.write_pending()
    (tmp_path / "o").write_bytes(b"")
    with pytest.raises(DamagedIndex):
        offsets.lookup(300)


def test_lookups_that_go_forward_or_jump_find_the_same(tmp_path: Path) -> None:
    count = 5000
    index = OffsetIndex(a_file(tmp_path, "o"), base_offset=0)
    for number in range(1, count + 1):
        index.append(10 * number, 100 * number)
    index.write_pending()
    probes = [*range(0, 10 * count + 20, 7), *((number * 7919) % (11 * count) for number in range(3000))]
    for probe in probes:
        number = min(probe // 10, count)
        expected = OffsetPosition(10 * number, 100 * number) if number else None
        assert index.lookup(probe) == expected
        assert index.lookup_position(10 * probe) == expected
