"""A growing log is written ahead with zeroes: never seen as records, and cut when the growth ends."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.log.test_dump import dump
from log.directories.test_log_move import a_manager, append
from log.files.test_log_file import a_directory, created
from log.files.test_preallocation import ORDERS, PIECE, a_grown_log
from log.given_logs import NOW_MS, read_all
from odradek.log.config import LogConfig
from odradek.log.files.log_file import PAVED_BYTES, STEPS_FROM_BYTES, LogFile
from odradek.log.offline.verify.directory import verify
from odradek.testing.faulty_files import FaultyFiles


def a_growing_file(path: Path, files: FaultyFiles | None = None) -> LogFile:
    """One that the next byte makes long enough for steps."""
    file = created(a_directory(path, files), "0.log")
    file.grow_in_steps()
    file.append(b"a" * STEPS_FROM_BYTES)
    return file


def behind(file: LogFile) -> bytes:
    """What the file has behind its last byte."""
    return Path(file.path).read_bytes()[file.size :]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 3 * PAVED_BYTES), min_size=1, max_size=20))
def test_whatever_is_appended_is_there_with_zeroes_up_to_a_multiple(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    file = a_growing_file(tmp_path_factory.mktemp("log"))
    expected = b"a" * STEPS_FROM_BYTES
    for number, size in enumerate(sizes, 1):
        piece = bytes([number]) * size
        file.append(memoryview(piece) if number % 2 else piece)
        expected += piece
        assert behind(file) == bytes(-len(expected) % PAVED_BYTES)
    assert file.read(0, file.size) == expected


def test_no_zeroes_are_written_where_there_are_some(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = a_growing_file(tmp_path, files)
    calls: list[str] = []
    file.append(b"first")
    files.fault = lambda call, path: calls.append(call) or 0
    for _ in range(10):
        file.append(b"x" * 1000)
    assert calls == ["write_at"] * 10
    assert len(behind(file)) == PAVED_BYTES - 10_005


def test_a_small_log_is_as_long_as_its_records(tmp_path: Path) -> None:
    file = created(a_directory(tmp_path), "0.log")
    file.grow_in_steps()
    while file.size < STEPS_FROM_BYTES:
        file.append(b"x" * (STEPS_FROM_BYTES // 16))
        assert behind(file) == b""


def test_a_log_that_is_left_alone_is_cut_to_its_records(tmp_path: Path) -> None:
    file = a_growing_file(tmp_path)
    file.append(b"x")
    file.give_back_when_idle()
    assert len(behind(file)) == PAVED_BYTES - 1  # it may have been appended to just now
    file.append(b"y")
    file.give_back_when_idle()
    assert len(behind(file)) == PAVED_BYTES - 2
    file.give_back_when_idle()
    assert behind(file) == b""
    file.append(b"z")
    assert file.read(STEPS_FROM_BYTES, 3) == b"xyz"
    assert len(behind(file)) == PAVED_BYTES - 3


def test_a_log_without_zeroes_is_not_touched_when_it_is_idle(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = created(a_directory(tmp_path, files), "0.log")
    file.grow_in_steps()
    file.append(b"x")
    files.fault = lambda call, path: errno.EIO
    for _ in range(3):
        file.give_back_when_idle()
    assert file.size == 1


def test_a_reserved_segment_stays_as_long_as_it_was_made(tmp_path: Path) -> None:
    config = LogConfig(preallocate=True, segment_bytes=2 * STEPS_FROM_BYTES)
    log = a_manager(tmp_path).get_or_create(ORDERS, config, now_ms=NOW_MS)
    log.roll(NOW_MS)
    append(log, b"first")
    active = log.roll(NOW_MS).log
    while active.size <= STEPS_FROM_BYTES:
        append(log, PIECE)
        log.give_back_when_idle()
        log.give_back_when_idle()
        assert os.stat(active.path).st_size == 2 * STEPS_FROM_BYTES


def test_a_truncated_log_has_neither_records_nor_zeroes_behind_its_end(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    log.truncate_to(10, now_ms=NOW_MS)
    active = log.segments.active.log
    assert behind(active) == b""
    while active.size <= STEPS_FROM_BYTES:
        append(log, PIECE)
    assert behind(active) == bytes(-active.size % PAVED_BYTES)
    assert len(read_all(log, max_bytes=1 << 30)) == log.log_end_offset


def test_a_disk_too_full_for_zeroes_takes_the_records(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = a_growing_file(tmp_path, files)
    files.free_bytes = 1000
    file.append(b"x" * 1000)
    assert file.read(STEPS_FROM_BYTES, 2000) == b"x" * 1000
    assert behind(file) == b""


def test_a_disk_too_full_for_the_records_leaves_no_trace_of_them(tmp_path: Path) -> None:
    files = FaultyFiles()
    file = a_growing_file(tmp_path, files)
    files.free_bytes = 1000
    with pytest.raises(OSError, match="No space"):
        file.append(b"x" * 1001)
    assert (file.size, behind(file)) == (STEPS_FROM_BYTES, b"")
    files.free_bytes = None
    file.append(b"y")
    assert file.read(STEPS_FROM_BYTES, 2) == b"y"
    assert len(behind(file)) == PAVED_BYTES - 1


@pytest.mark.parametrize("end", ["roll", "close"])
def test_a_segment_that_ends_is_cut_to_its_records(tmp_path: Path, end: str) -> None:
    log = a_grown_log(tmp_path)
    active = log.segments.active.log
    assert behind(active)
    log.roll(NOW_MS) if end == "roll" else log.close(NOW_MS)
    assert behind(active) == b""


def test_recovery_cuts_the_zeroes_of_a_killed_broker_and_calls_it_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = a_grown_log(tmp_path)
    active, end = log.segments.active.log, log.log_end_offset
    assert behind(active)
    with caplog.at_level(logging.INFO):
        recovered = a_manager(tmp_path).get(ORDERS)
    assert recovered is not None
    assert recovered.log_end_offset == end
    assert behind(active) == b""
    reported = [record for record in caplog.records if "only space for records" in record.message]
    assert [record.levelno for record in reported] == [logging.INFO]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_half_a_batch_before_the_zeroes_is_reported_and_cut(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = a_grown_log(tmp_path)
    append(log, b"x" * 100_000)
    active, end = log.segments.active.log, log.log_end_offset
    with open(active.path, "r+b") as file:
        file.seek(active.size - 50_000)
        file.write(bytes(50_000))
    recovered = a_manager(tmp_path).get(ORDERS)
    assert recovered is not None
    assert recovered.log_end_offset == end - 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_dump_and_verify_take_the_zeroes_for_room(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    log.segments.active.write_pending()
    active = log.segments.active.log
    dumped = dump("-o", "json", active.path)
    rows = [json.loads(line) for line in dumped.stdout.splitlines()]
    batches = [row for row in rows if "baseOffset" in row]
    assert (dumped.exit_code, len(batches)) == (0, log.log_end_offset)
    findings: list[object] = []
    verify(log.directory.path, findings.append)
    assert findings == []


def test_other_bytes_behind_the_records_are_damage_still(tmp_path: Path) -> None:
    log = a_grown_log(tmp_path)
    log.segments.active.write_pending()
    active = log.segments.active.log
    with open(active.path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    assert dump(active.path).exit_code == 1
    findings: list[object] = []
    verify(log.directory.path, findings.append)
    assert len(findings) == 1
