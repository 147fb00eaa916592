from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from log.cleaner.given_compaction import append, compacted_log, manager_of, records_of, roll
from log.given_logs import NOW_MS, after_crash, open_log
from odradek.common.ids import TopicPartition
from odradek.log.cleaner.cleaning import CleanedGroup
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.errors import CleaningAborted
from odradek.log.cleaner.manager import CleanerManager
from odradek.log.partition.partition_log import PartitionLog
from odradek.testing.faulty_files import FaultyFiles


def a_dirty_log(path: Path, partition: int = 0, *, rounds: int = 60, **changes: object) -> PartitionLog:
    log = compacted_log(path, **changes)
    log.partition = TopicPartition("orders", partition)
    for number in range(rounds):
        append(log, [(b"%d" % (number % 5), b"x" * 50)])
    roll(log)
    return log


def checkpoint_of(path: Path) -> str:
    return (path / "cleaner-offset-checkpoint").read_text()


def test_the_dirtiest_log_is_cleaned_first_and_then_the_others(tmp_path: Path) -> None:
    half, whole = a_dirty_log(tmp_path / "a", 0), a_dirty_log(tmp_path / "b", 1)
    manager = manager_of(half, whole)
    manager._move_checkpoint(half, half.log_end_offset // 2)

    cleaned = []
    while (outcome := manager.run(NOW_MS)) is not None:
        cleaned.append(outcome.partition.partition)

    assert cleaned == [1, 0]
    assert manager.targets(NOW_MS) == []


def test_the_checkpoint_file_is_kafkas(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)

    manager_of(log).run(NOW_MS)

    assert checkpoint_of(tmp_path) == "0\n1\norders 0 60\n"
    assert manager_of(log).checkpoint(log) == 60


def test_a_damaged_checkpoint_makes_everything_dirty(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    manager_of(log).run(NOW_MS)
    (tmp_path / "cleaner-offset-checkpoint").write_bytes(b"0\n7\nrubbish")

    manager = manager_of(log)

    assert manager.checkpoint(log) is None
    assert [target.first_dirty_offset for _, target in manager.targets(NOW_MS)] == [0]


def test_a_log_below_the_ratio_waits(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path, min_cleanable_dirty_ratio=0.9)
    manager = manager_of(log)
    manager._move_checkpoint(log, 30)

    assert manager.run(NOW_MS) is None


def test_only_compacted_topics_are_cleaned(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    log.config = log.config.replace(cleanup_policy=("delete",))

    assert manager_of(log).run(NOW_MS) is None


@pytest.mark.parametrize(
    "config", [CleanerConfig(log_cleaner_enable=False), CleanerConfig(log_cleaner_threads=0)]
)
def test_a_cleaner_that_is_off_does_nothing(tmp_path: Path, config: CleanerConfig) -> None:
    assert manager_of(a_dirty_log(tmp_path), config=config).run(NOW_MS) is None


def test_one_run_for_each_thread_and_never_two_on_one_log(tmp_path: Path) -> None:
    first, second = a_dirty_log(tmp_path / "a", 0), a_dirty_log(tmp_path / "b", 1)

    single = manager_of(first, second)
    assert single.begin(NOW_MS) is not None
    assert single.begin(NOW_MS) is None

    double = manager_of(first, second, config=CleanerConfig(log_cleaner_threads=3))
    runs = [double.begin(NOW_MS) for _ in range(3)]
    assert [run.log.partition.partition for run in runs if run is not None] == [0, 1]
    assert sorted(double.running) == [first.partition, second.partition]


# Damage


def flip(path: str, position: int) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))


@pytest.mark.parametrize("is_dirty", [True, False], ids=["in the dirty part", "in the clean part"])
def test_a_corrupt_batch_makes_a_log_uncleanable_and_leaves_its_files_alone(
    tmp_path: Path, is_dirty: bool
) -> None:
    log = a_dirty_log(tmp_path)
    victim = list(log.segments)[1]
    flip(victim.log.path, 100)
    manager = manager_of(log)
    if not is_dirty:
        manager._move_checkpoint(log, list(log.segments)[2].base_offset)
    before = {entry.name: entry.stat().st_size for entry in os.scandir(log.directory.path)}

    outcome = manager.run(NOW_MS)

    assert outcome is not None
    assert outcome.problem is not None
    assert f"{victim.base_offset:020d}.log" in outcome.problem
    assert "CRC" in outcome.problem
    assert manager.uncleanable == {log.partition: outcome.problem}
    after = {entry.name: entry.stat().st_size for entry in os.scandir(log.directory.path)}
    if is_dirty:
        assert after == before
    assert not any(name.endswith((".cleaned", ".swap")) for name in after)
    assert manager.run(NOW_MS) is None


def test_a_full_disk_ends_the_run_and_the_next_one_succeeds(tmp_path: Path) -> None:
    a_dirty_log(tmp_path).close(NOW_MS)
    files = FaultyFiles()
    log = open_log(tmp_path / "orders-0", compacted_log(tmp_path / "other").config, files=files)
    log.update_high_watermark(60)
    before = records_of(log)
    manager = manager_of(log)

    files.free_bytes = 10
    outcome = manager.run(NOW_MS)

    assert outcome is not None
    assert outcome.storage_error is not None
    assert outcome.storage_error.is_no_space
    assert records_of(log) == before
    assert manager.uncleanable == {}

    files.free_bytes = None
    outcome = manager.run(NOW_MS)
    assert outcome is not None
    assert outcome.problem is None
    assert len(records_of(log)) == 5


def test_a_swap_that_the_disk_refuses_leaves_the_old_segments(tmp_path: Path) -> None:
    a_dirty_log(tmp_path).close(NOW_MS)
    files = FaultyFiles()
    log = open_log(tmp_path / "orders-0", compacted_log(tmp_path / "other").config, files=files)
    log.update_high_watermark(60)
    before = records_of(log)
    files.fault = lambda call, path: errno.EIO if call == "rename" and path.endswith(".index.cleaned") else 0

    outcome = manager_of(log).run(NOW_MS)

    assert outcome is not None
    assert outcome.storage_error is not None
    assert not outcome.storage_error.is_no_space
    assert records_of(log) == before
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(log.directory.path))


def test_a_directory_that_cannot_be_synced_ends_the_run_and_costs_nothing(tmp_path: Path) -> None:
    a_dirty_log(tmp_path).close(NOW_MS)
    files = FaultyFiles()
    log = open_log(tmp_path / "orders-0", compacted_log(tmp_path / "other").config, files=files)
    log.update_high_watermark(60)
    values = dict(record[1:] for record in records_of(log))
    files.fault = lambda call, path: errno.EIO if call == "sync_directory" and "orders-0" in path else 0

    outcome = manager_of(log).run(NOW_MS)

    assert outcome is not None
    assert outcome.storage_error is not None
    assert dict(record[1:] for record in records_of(log)) == values
    files.fault = lambda call, path: 0
    log.close(NOW_MS)
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(log.directory.path))


# Logs that change meanwhile


class Paced:
    """A run, group by group."""

    def __init__(self, log: PartitionLog) -> None:
        self.manager = manager_of(log)
        cleaning = self.manager.begin(NOW_MS)
        assert cleaning is not None
        self.cleaning = cleaning
        cleaning.build_map()

    def next_group(self) -> CleanedGroup:
        group = self.cleaning.clean_next_group()
        assert group is not None
        return group


def test_a_truncation_meanwhile_ends_the_run(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    run = Paced(log)
    group = run.next_group()
    log.truncate_to(group.old[0].base_offset + 1, now_ms=NOW_MS)
    left = records_of(log)

    with pytest.raises(CleaningAborted):
        run.cleaning.begin_swap(group, now_ms=NOW_MS)

    assert records_of(log) == left
    assert not any(name.endswith((".cleaned", ".swap")) for name in os.listdir(log.directory.path))


def test_a_truncation_that_was_filled_up_again_ends_the_run_too(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    run = Paced(log)
    groups = [run.next_group() for _ in range(2)]
    end = list(log.segments)[-2].base_offset
    log.truncate_to(end, now_ms=NOW_MS)
    for _ in range(20):
        append(log, [(b"new", b"y" * 50)])
    roll(log)

    with pytest.raises(CleaningAborted):
        run.cleaning.begin_swap(groups[0], now_ms=NOW_MS)


def test_segments_that_retention_took_end_the_run(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path, cleanup_policy=("compact", "delete"), retention_bytes=1500)
    run = Paced(log)
    group = run.next_group()
    assert log.enforce_retention(NOW_MS) is not None
    left = records_of(log)

    with pytest.raises(CleaningAborted):
        run.cleaning.begin_swap(group, now_ms=NOW_MS)

    assert records_of(log) == left


@pytest.mark.parametrize("steps", [0, 1], ids=["old files still there", "old files buried"])
@pytest.mark.parametrize("cut", ["truncate", "truncate fully", "retention", "close"])
def test_what_cuts_a_log_in_the_middle_of_a_swap_finishes_the_swap_first(
    tmp_path: Path, steps: int, cut: str
) -> None:
    log = a_dirty_log(tmp_path, cleanup_policy=("compact", "delete"), retention_bytes=300)
    run = Paced(log)
    swap = run.cleaning.begin_swap(run.next_group(), now_ms=NOW_MS)
    for _ in range(steps):
        next(swap)

    if cut == "truncate":
        log.truncate_to(40, now_ms=NOW_MS)
    elif cut == "truncate fully":
        log.truncate_fully_and_start_at(200, now_ms=NOW_MS)
    elif cut == "retention":
        assert log.enforce_retention(NOW_MS) is not None
    else:
        log.close(NOW_MS)

    assert list(swap) == []
    assert all(segment.state == "" for segment in log.segments)
    assert not any(name.endswith((".swap", ".cleaned")) for name in os.listdir(log.directory.path))
    left = records_of(log)
    log.release()
    known = after_crash(0, log.high_watermark, log.log_start_offset)
    assert records_of(open_log(log.directory.path, log.config, checkpoints=known)) == left


def test_an_aborted_run_ends_at_the_next_chunk_and_leaves_nothing(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    before = records_of(log)
    manager = manager_of(log)
    cleaning = manager.begin(NOW_MS)
    assert cleaning is not None
    cleaning.build_map()

    manager.abort(log.partition)

    with pytest.raises(CleaningAborted):
        cleaning.clean_next_group()
    assert records_of(log) == before
    assert not any(name.endswith(".cleaned") for name in os.listdir(log.directory.path))


def test_appends_continue_while_a_log_is_cleaned(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    run = Paced(log)
    while (group := run.cleaning.clean_next_group()) is not None:
        append(log, [(b"0", b"meanwhile")])
        list(run.cleaning.begin_swap(group, now_ms=NOW_MS))

    kept = records_of(log)
    assert [offset for offset, _, value in kept if value == b"meanwhile"] == list(
        range(60, log.log_end_offset)
    )
    assert len(kept) == 5 + log.log_end_offset - 60


def test_a_reader_keeps_the_bytes_that_it_found(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    found = log.read(0, 500).range
    assert found is not None
    before = found.read()

    manager_of(log).run(NOW_MS)
    for path in log.due_garbage(NOW_MS + log.config.file_delete_delay_ms):
        os.unlink(path)

    assert found.read() == before


def test_a_paused_log_is_not_cleaned_until_it_is_resumed_as_often(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    manager = manager_of(log)
    manager.pause(log.partition)
    manager.pause(log.partition)

    manager.resume(log.partition)
    assert manager.run(NOW_MS) is None
    manager.resume(log.partition)
    assert manager.run(NOW_MS) is not None


def test_what_is_written_after_a_truncation_is_dirty(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    manager = manager_of(log)
    manager.run(NOW_MS)
    log.truncate_to(20, now_ms=NOW_MS)

    manager.truncated(log)()

    assert manager.checkpoint(log) == log.log_end_offset
    assert checkpoint_of(tmp_path) == f"0\n1\norders 0 {log.log_end_offset}\n"


def test_a_removed_log_is_forgotten(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    manager = manager_of(log)
    manager.run(NOW_MS)
    manager.uncleanable[log.partition] = "damage"

    manager.removed(log)()

    assert manager.checkpoint(log) is None
    assert manager.uncleanable == {}
    assert checkpoint_of(tmp_path) == "0\n0\n"


def test_a_log_that_is_removed_under_a_run_is_no_failed_disk(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    logs = {log.partition: log}
    manager = CleanerManager(CleanerConfig(), log.directory.files, logs)
    cleaning = manager.begin(NOW_MS)
    assert cleaning is not None
    steps = manager.steps(cleaning)
    next(steps)
    del logs[log.partition]

    with pytest.raises(StopIteration) as stop:
        steps.throw(FileNotFoundError(errno.ENOENT, "gone"))

    assert stop.value.value.storage_error is None
    assert stop.value.value.problem == "the log was removed while it was cleaned"
    assert manager.running == []


def test_a_log_that_is_removed_in_the_last_step_of_a_run_gets_no_checkpoint(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    manager = manager_of(log)
    cleaning = manager.begin(NOW_MS)
    assert cleaning is not None
    steps = manager.steps(cleaning)
    step = next(steps)
    while (result := step()) is not None or step != cleaning.clean_next_group:
        step = steps.send(result)

    manager.removed(log)()

    with pytest.raises(StopIteration) as stop:
        steps.send(None)
    assert "aborted" in stop.value.value.problem
    assert manager.checkpoint(log) is None
