from __future__ import annotations

import struct
from pathlib import Path

import pytest

from log.given_logs import NOW_MS, a_batch
from odradek.log.offline.verify.indexes import OffsetIndexCheck, TimeIndexCheck
from odradek.records.batch import BatchHeader, read_header

# Ten batches of two records, 100 bytes apart, in a segment that begins with offset 1000.
BATCHES = [
    (100 * n, read_header(a_batch(2, base_offset=1000 + 2 * n, timestamp_ms=NOW_MS + n))) for n in range(10)
]


def offset_problems(path: Path, *entries: tuple[int, int], is_active: bool = False) -> list[str]:
    path.write_bytes(b"".join(struct.pack(">ii", *entry) for entry in entries))
    check = OffsetIndexCheck(str(path), 1000, is_active=is_active)
    for position, header in BATCHES:
        check.add_batch(position, header)
    return [problem for _, problem in check.finish()]


def time_problems(
    path: Path, *entries: tuple[int, int], is_active: bool = False, first_offset: int | None = None
) -> list[str]:
    def first_offset_with(header: BatchHeader, position: int, timestamp_ms: int) -> int | None:
        assert (position, header.max_timestamp_ms) == (100 * (timestamp_ms - NOW_MS), timestamp_ms)
        return first_offset

    path.write_bytes(b"".join(struct.pack(">qi", NOW_MS + ms, offset) for ms, offset in entries))
    check = TimeIndexCheck(str(path), 1000, is_active=is_active, first_offset_with=first_offset_with)
    for position, header in BATCHES:
        check.add_batch(position, header)
    return [problem for _, problem in check.finish()]


def test_entries_name_the_end_of_the_batch_at_their_position(tmp_path: Path) -> None:
    assert offset_problems(tmp_path / "index", (5, 200), (9, 400), (19, 900)) == []


def test_entries_of_older_kafkas_name_the_end_of_a_later_batch(tmp_path: Path) -> None:
    assert offset_problems(tmp_path / "index", (7, 200), (19, 400)) == []


@pytest.mark.parametrize(
    "entries",
    [
        [(5, 201)],  # no batch begins there
        [(4, 200)],  # no batch ends with it
        [(3, 200)],  # the end of an earlier batch
        [(9, 200), (11, 300)],  # the end of a batch behind the next entry
        [(5, 200), (5, 300)],
        [(9, 400), (7, 300)],
        [(5, 200), (21, 1000)],
        [(-3, 200)],
    ],
    ids=str,
)
def test_an_offset_entry_that_leads_astray_is_found(tmp_path: Path, entries: list[tuple[int, int]]) -> None:
    assert offset_problems(tmp_path / "index", *entries)


def test_zeroes_at_the_end_are_room_in_the_active_segment_only(tmp_path: Path) -> None:
    with_room = [(5, 200), (9, 400), *[(0, 0)] * 5000]
    assert offset_problems(tmp_path / "index", *with_room, is_active=True) == []
    assert offset_problems(tmp_path / "index", *with_room)
    assert offset_problems(tmp_path / "index", *with_room, (0, 1), is_active=True)


def test_time_entries_name_the_batch_that_has_the_greatest_timestamp_first(tmp_path: Path) -> None:
    assert time_problems(tmp_path / "index", (2, 5), (9, 19)) == []


@pytest.mark.parametrize(
    "entries", [[(3, 5), (9, 19)], [(2, 4), (9, 19)], [(2, 7), (9, 19)], [(2, 5)], [(9, 21)], []], ids=str
)
def test_a_time_entry_that_leads_astray_or_is_missing_is_found(
    tmp_path: Path, entries: list[tuple[int, int]]
) -> None:
    assert time_problems(tmp_path / "index", *entries)


def test_the_active_segment_need_not_end_with_its_greatest_timestamp(tmp_path: Path) -> None:
    assert time_problems(tmp_path / "index", (2, 5), is_active=True) == []


def test_some_kafkas_name_the_record_instead_of_its_batch(tmp_path: Path) -> None:
    assert time_problems(tmp_path / "index", (2, 4), (9, 19), first_offset=1004) == []
