"""A crash at any change that a run makes to the disk leaves all of the old or all of the new."""

from __future__ import annotations

import contextlib
import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from log.cleaner.given_compaction import (
    append,
    compacted_log,
    end_transaction,
    manager_of,
    records_of,
    roll,
)
from log.given_logs import NOW_MS, after_crash, open_log
from odradek.log.partition.partition_log import PartitionLog
from odradek.records.batch import read_header
from odradek.testing.faulty_files import Crashed, FaultyFiles

pytestmark = pytest.mark.slow  # each of them takes a second or more

KEYS = 6


def a_dirty_directory(path: Path) -> PartitionLog:
    """Several segments that become one, the first keys of all of them superseded by the last."""
    log = compacted_log(path, internal_segment_bytes=3000)
    for number in range(5):
        for key in range(KEYS):
            append(log, [(b"%d" % key, b"%d" % number)], producer=(9, 0, number * KEYS + key))
        append(log, [(b"t%d" % number, b"x")], producer=(4, 0, number), is_transactional=True)
        end_transaction(log, 4, is_commit=False)
        roll(log)
    append(log, [(b"active", b"x")])
    log.close(NOW_MS)
    return log


def last_values(log: PartitionLog) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in records_of(log)}


def clean_until_crash(path: Path, closed: PartitionLog, changes: int) -> bool:
    """Whether the run got to its end before so many changes were made."""
    files = FaultyFiles()
    checkpoints = after_crash(closed.log_end_offset, closed.high_watermark)
    log = open_log(path / "orders-0", closed.config, files=files, checkpoints=checkpoints)
    files.crash_after(changes)
    try:
        outcome = manager_of(log).run(NOW_MS)
    except Crashed:
        return False
    assert outcome is not None
    assert outcome.problem is None
    return True


def check(path: Path, closed: PartitionLog, before: list[tuple[int, bytes | None, bytes | None]]) -> None:
    checkpoints = after_crash(closed.log_end_offset, closed.high_watermark)
    # FaultyFiles without a fault: it does not wait for the disk.
    log = open_log(path / "orders-0", closed.config, checkpoints=checkpoints, files=FaultyFiles())
    found = records_of(log)

    assert set(found) <= set(before)
    assert [offset for offset, *_ in found] == sorted({offset for offset, *_ in found})
    cleaned = {key: value for key, value in last_values(log).items() if key is not None and key[:1] != b"t"}
    assert cleaned == {b"%d" % key: b"4" for key in range(KEYS)} | {b"active": b"x"}
    assert log.log_end_offset == closed.log_end_offset
    assert log.producers.entries[9].last_sequence == 5 * KEYS - 1
    names = os.listdir(path / "orders-0")
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in names)
    ends = [(s.base_offset, s.next_offset()) for s in log.segments if s.size]
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))

    outcome = manager_of(log).run(NOW_MS)
    if outcome is not None:
        assert outcome.problem is None
    for key in range(KEYS):
        assert sum(1 for _, found_key, _ in records_of(log) if found_key == b"%d" % key) == 1


def test_a_crash_at_any_change_leaves_all_of_the_old_or_all_of_the_new(tmp_path: Path) -> None:
    closed = a_dirty_directory(tmp_path / "original")
    before = records_of(open_log(tmp_path / "original" / "orders-0", closed.config))

    for changes in range(1000):
        path = tmp_path / "crashed"
        shutil.copytree(tmp_path / "original", path)
        is_done = clean_until_crash(path, closed, changes)
        check(path, closed, before)
        shutil.rmtree(path)
        if is_done:
            break

    assert is_done
    assert changes > 20


@pytest.mark.slow
def test_a_second_crash_while_a_swap_is_taken_up_costs_nothing(tmp_path: Path) -> None:
    closed = a_dirty_directory(tmp_path / "original")
    before = records_of(open_log(tmp_path / "original" / "orders-0", closed.config))
    swapped = [at for at in range(100) if leaves_a_swap(tmp_path, closed, at)]
    assert swapped

    for at in (swapped[0], swapped[len(swapped) // 2], swapped[-1]):
        for changes in range(30):
            path = tmp_path / "crashed"
            shutil.copytree(tmp_path / "original", path)
            clean_until_crash(path, closed, at)
            files = FaultyFiles()
            files.crash_after(changes)
            with contextlib.suppress(Crashed):
                open_log(
                    path / "orders-0",
                    closed.config,
                    files=files,
                    checkpoints=after_crash(closed.log_end_offset),
                )
            check(path, closed, before)
            shutil.rmtree(path)


def leaves_a_swap(tmp_path: Path, closed: PartitionLog, changes: int) -> bool:
    path = tmp_path / "probe"
    shutil.copytree(tmp_path / "original", path)
    clean_until_crash(path, closed, changes)
    found = any(name.endswith(".swap") for name in os.listdir(path / "orders-0"))
    shutil.rmtree(path)
    return found


def test_files_and_directory_are_synced_before_each_step_that_relies_on_them(tmp_path: Path) -> None:
    closed = a_dirty_directory(tmp_path)
    files = FaultyFiles()
    log = open_log(
        tmp_path / "orders-0",
        closed.config,
        files=files,
        checkpoints=after_crash(closed.log_end_offset, closed.high_watermark),
    )
    directory = str(tmp_path / "orders-0")
    events: list[str] = []

    def watch(call: str, path: str) -> int:
        if call in ("sync", "sync_directory", "rename"):
            events.append(f"{call} {os.path.relpath(path, directory)}")
        return 0

    files.fault = watch
    manager_of(log).run(NOW_MS)

    first = f"{log.segments.first.base_offset:020d}"
    swap = events.index(f"rename {first}.log.cleaned")
    assert f"sync {first}.log.cleaned" in events[:swap]
    assert f"sync {first}.index.cleaned" in events[:swap]
    buried = events.index(f"rename {first}.log")
    assert "sync_directory ." in events[swap:buried]
    final = events.index(f"rename {first}.log.swap")
    assert "sync_directory ." in events[buried:final]


def test_a_cleaned_segment_reaches_as_far_as_those_that_it_replaces(tmp_path: Path) -> None:
    """Else a crash right after the swap would leave some of them, with records that are gone elsewhere."""
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    roll(log)
    append(log, [(b"a", b"2")])
    roll(log)
    append(log, [(b"b", b"1")])
    append(log, [(b"a", b"3")])
    roll(log)
    log.config = log.config.replace(internal_segment_bytes=200)

    manager_of(log).run(NOW_MS)

    first = log.segments.first
    assert first.next_offset() == 2
    assert read_header(first.log.read(0, 61)).record_count == 0


@pytest.mark.parametrize(
    "leftover", ["00000000000000000000.txnindex.cleaned", "00000000000000000000.log.cleaned"]
)
def test_leftovers_of_an_interrupted_run_do_not_disturb_the_next(tmp_path: Path, leftover: str) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    append(log, [(b"a", b"2")])
    roll(log)
    (tmp_path / "orders-0" / leftover).write_bytes(b"rubbish" * 100)

    manager_of(log).run(NOW_MS)

    assert records_of(log) == [(1, b"a", b"2")]
    assert not list(log.segments.first.txn_index)
    assert not (tmp_path / "orders-0" / leftover).exists()
