from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from log.given_directories import (
    ORDERS,
    SMALL_SEGMENTS,
    a_log_directory,
    append_batch,
    fill_with_everything,
    open_manager,
)
from log.given_logs import NOW_MS, read_all
from odradek.log.offline import fork as fork_module
from odradek.log.offline.fork import CannotFork, fork
from odradek.log.offline.read_only import NotALog, PartitionFiles
from odradek.log.offline.scan import scan
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import LogFinding


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found


def records(path: Path) -> list[tuple[int, int, bytes]]:
    rows = (row for batch in scan(path) for row in batch.to_pylist())
    return [(row["partition"], row["offset"], row["value"]) for row in rows]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return a_log_directory(tmp_path / "source")


def test_a_fork_has_the_same_records_and_is_healthy(source: Path, tmp_path: Path) -> None:
    report = fork(str(source), str(tmp_path / "fork"))
    assert report.partitions == 2
    assert records(tmp_path / "fork") == records(source)
    assert findings(tmp_path / "fork") == []


def test_closed_logs_are_linked_and_the_active_one_is_copied(source: Path, tmp_path: Path) -> None:
    fork(str(source), str(tmp_path / "fork"))
    *closed, active = sorted((source / "orders-0").glob("*.log"))
    assert closed
    for log in closed:
        assert log.samefile(tmp_path / "fork" / "orders-0" / log.name)
    assert not active.samefile(tmp_path / "fork" / "orders-0" / active.name)


def test_both_sides_can_be_written_without_the_other_seeing_it(source: Path, tmp_path: Path) -> None:
    fork(str(source), str(tmp_path / "fork"))
    before = records(source)
    for one, other in ((source, tmp_path / "fork"), (tmp_path / "fork", source)):
        seen = records(other)
        manager = open_manager(one)
        for number in range(40):
            append_batch(manager.logs[ORDERS[0]], number, epoch=9)
        manager.stop(NOW_MS)
        assert records(other) == seen
        assert findings(one) == []
    assert records(source)[: len(before) // 2 - 5] == before[: len(before) // 2 - 5]


def test_a_broker_loads_a_fork_of_a_clean_log_without_a_scan(source: Path, tmp_path: Path) -> None:
    fork(str(source), str(tmp_path / "fork"))
    assert (tmp_path / "fork" / ".kafka_cleanshutdown").exists()
    manager = open_manager(tmp_path / "fork")
    assert not manager.report.corrupted
    assert len(read_all(manager.logs[ORDERS[0]])) > 100
    manager.stop(NOW_MS)


def test_one_partition_becomes_a_log_directory_of_its_own(source: Path, tmp_path: Path) -> None:
    fork(str(source / "orders-1"), str(tmp_path / "fork"))
    assert sorted(path.name for path in (tmp_path / "fork").iterdir() if path.is_dir()) == ["orders-1"]
    assert "orders 0" not in (tmp_path / "fork" / "recovery-point-offset-checkpoint").read_text()
    assert findings(tmp_path / "fork") == []


def test_a_fork_belongs_to_nobody_unless_it_is_asked_for(source: Path, tmp_path: Path) -> None:
    fork(str(source), str(tmp_path / "anybody"))
    fork(str(source), str(tmp_path / "same"), keeps_identity=True)
    assert not (tmp_path / "anybody" / "meta.properties").exists()
    assert (tmp_path / "same" / "meta.properties").read_bytes() == (source / "meta.properties").read_bytes()


def test_a_target_in_use_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "fork").mkdir()
    (tmp_path / "fork" / "mine.txt").write_text("mine")
    with pytest.raises(CannotFork, match="something already"):
        fork(str(source), str(tmp_path / "fork"))
    assert (tmp_path / "fork" / "mine.txt").read_text() == "mine"


def test_an_empty_target_will_do(source: Path, tmp_path: Path) -> None:
    (tmp_path / "fork").mkdir()
    fork(str(source), str(tmp_path / "fork"))
    assert findings(tmp_path / "fork") == []


def test_a_source_that_is_no_log_makes_no_target(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotALog):
        fork(str(tmp_path / "empty"), str(tmp_path / "fork"))
    assert not (tmp_path / "fork").exists()


def test_on_another_file_system_everything_is_copied(source: Path, tmp_path: Path) -> None:
    def refuse(*_: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    report = fork(str(source), str(tmp_path / "fork"), link=refuse)
    assert report.could_not_link
    assert report.linked_files == 0
    assert records(tmp_path / "fork") == records(source)
    assert findings(tmp_path / "fork") == []


def test_a_failure_leaves_nothing_behind(source: Path, tmp_path: Path) -> None:
    def fail(*_: str) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        fork(str(source), str(tmp_path / "fork"), link=fail)
    assert not (tmp_path / "fork").exists()


def test_half_a_batch_at_the_end_of_the_source_stays_out(tmp_path: Path) -> None:
    source = a_log_directory(tmp_path / "source", is_clean=False)
    active = max((source / "orders-0").glob("*.log"))
    whole = len(records(source))
    active.write_bytes(active.read_bytes() + active.read_bytes()[:70])

    fork(str(source), str(tmp_path / "fork"))

    assert len(records(tmp_path / "fork")) == whole
    assert findings(tmp_path / "fork") == []


def test_a_snapshot_that_is_being_written_stays_out(tmp_path: Path) -> None:
    source = a_log_directory(tmp_path / "source", is_clean=False)
    snapshots = sorted((source / "orders-0").glob("*.snapshot"))
    snapshots[-1].write_bytes(b"")

    fork(str(source), str(tmp_path / "fork"))

    forked = sorted(path.name for path in (tmp_path / "fork" / "orders-0").glob("*.snapshot"))
    assert forked == [path.name for path in snapshots[:-1]]
    assert findings(tmp_path / "fork") == []


def test_zeroes_that_only_reserve_room_stay_out(tmp_path: Path) -> None:
    """As Kafka leaves the files of its active segment while it runs."""
    source = a_log_directory(tmp_path / "source", is_clean=False)
    for kind in ("index", "timeindex", "log"):
        active = max((source / "orders-0").glob(f"*.{kind}"))
        active.write_bytes(active.read_bytes() + bytes(2400))

    fork(str(source), str(tmp_path / "fork"))

    assert findings(tmp_path / "fork") == []


@pytest.mark.slow
def test_forks_taken_while_the_source_is_written_are_whole_prefixes(tmp_path: Path) -> None:
    manager = open_manager(tmp_path / "source")
    log = manager.get_or_create(ORDERS[0], SMALL_SEGMENTS, now_ms=NOW_MS)
    fill_with_everything(log, 10)
    is_done = threading.Event()
    forked: list[Path] = []

    def take_forks() -> None:
        while not is_done.is_set() or len(forked) <= 3:
            target = tmp_path / f"fork-{len(forked)}"
            fork(str(tmp_path / "source"), str(target))
            forked.append(target)

    taker = threading.Thread(target=take_forks)
    taker.start()
    for number in range(3000):
        append_batch(log, number, epoch=3)
        if number % 100 == 0:
            log.update_high_watermark(log.log_end_offset)
            log.delete_records(max(log.log_start_offset, log.log_end_offset - 400))
            log.enforce_retention(NOW_MS)
    is_done.set()
    taker.join()
    every = {offset: value for _, offset, value in records(tmp_path / "source")}
    manager.abandon()

    assert len(forked) > 3
    for target in forked:
        assert [found for found in findings(target) if not found.path.endswith("checkpoint")] == []
        found = records(target)
        assert all(every.get(offset, value) == value for _, offset, value in found)
        assert [offset for _, offset, _ in found] == sorted({offset for _, offset, _ in found})


def test_a_log_start_that_passes_the_end_of_the_fork_takes_no_epoch_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = open_manager(tmp_path / "source")
    log = manager.get_or_create(ORDERS[0], SMALL_SEGMENTS, now_ms=NOW_MS)
    for number in range(3):
        append_batch(log, number, epoch=3)
    whole_batches = fork_module._whole_batches

    def meanwhile(files: PartitionFiles, base_offset: int) -> tuple[int, int]:
        """The fork has its copy of the log, and has not looked at the epochs yet."""
        found = whole_batches(files, base_offset)
        append_batch(log, 3, epoch=4)
        log.update_high_watermark(log.log_end_offset)
        log.delete_records(log.log_end_offset)
        return found

    monkeypatch.setattr(fork_module, "_whole_batches", meanwhile)
    fork(str(tmp_path / "source"), str(tmp_path / "fork"))
    manager.abandon()

    assert findings(tmp_path / "fork") == []
    (epochs,) = (tmp_path / "fork").rglob("leader-epoch-checkpoint")
    assert epochs.read_text() == "0\n1\n3 0\n"


def test_a_source_that_never_holds_still_is_given_up(source: Path, tmp_path: Path) -> None:
    def link_and_replace(path: str, target: str) -> None:
        """As if the cleaner put another file there each time."""
        os.link(path, target)
        shutil.copyfile(path, f"{path}.cleaned")
        os.rename(f"{path}.cleaned", path)

    with pytest.raises(CannotFork, match="change faster"):
        fork(str(source), str(tmp_path / "fork"), link=link_and_replace)
    assert not (tmp_path / "fork").exists()


def test_a_source_that_was_compacted_meanwhile_is_forked_again(source: Path, tmp_path: Path) -> None:
    replaced: list[str] = []

    def link_and_replace_once(path: str, target: str) -> None:
        os.link(path, target)
        if not replaced:
            replaced.append(path)
            shutil.copyfile(path, f"{path}.cleaned")
            os.rename(f"{path}.cleaned", path)

    fork(str(source), str(tmp_path / "fork"), link=link_and_replace_once)
    assert os.path.samefile(replaced[0], tmp_path / "fork" / "orders-0" / os.path.basename(replaced[0]))
    assert findings(tmp_path / "fork") == []


def test_the_lock_of_the_source_is_not_touched(source: Path, tmp_path: Path) -> None:
    manager = open_manager(source)
    command = [sys.executable, "-m", "odradek.cli.main", "log", "fork", str(source), str(tmp_path / "fork")]
    subprocess.run(command, check=True, capture_output=True)
    manager.stop(NOW_MS)
    assert not (tmp_path / "fork" / ".lock").exists()


@pytest.mark.parametrize("is_source_cut", [True, False])
def test_truncating_and_writing_one_side_leaves_the_other_alone(
    source: Path, tmp_path: Path, is_source_cut: bool
) -> None:
    fork(str(source), str(tmp_path / "fork"), keeps_identity=True)
    cut, kept = (source, tmp_path / "fork") if is_source_cut else (tmp_path / "fork", source)
    before = records(kept)
    first_segment, second_segment, *_ = sorted((cut / "orders-0").glob("*.log"))

    manager = open_manager(cut)
    log = manager.logs[ORDERS[0]]
    # First to the very end of a shared segment, which is then written; next into the middle of one.
    for offset in (int(second_segment.stem), int(first_segment.stem) + 1):
        log.truncate_to(offset, now_ms=NOW_MS)
        append_batch(log, 99, epoch=log.epochs.latest)
    manager.stop(NOW_MS)

    assert records(kept) == before
    assert findings(kept) == []
    assert findings(cut) == []
