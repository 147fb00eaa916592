from __future__ import annotations

from itertools import count
from pathlib import Path

from log.given_logs import NOW_MS
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.log.directories.log_manager import LogManager
from odradek.log.directories.log_move import LogMove
from odradek.log.files.file_system import FileSystem
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import Isolation
from odradek.records.batch import iterate_headers
from odradek.records.builder import build_batch
from odradek.records.record import Record, read_records
from odradek.testing.faulty_files import Crashed, FaultyFiles

ORDERS = TopicPartition("orders", 0)
SMALL = LogConfig(segment_bytes=1 << 20)


def a_manager(directory: Path, files: FileSystem | None = None) -> LogManager:
    places = [str(directory / "a"), str(directory / "b")]
    manager = LogManager(places, broker_id=0, cluster_id="test", files=files)
    manager.start(NOW_MS, lambda topic: SMALL)
    return manager


def append(log: PartitionLog, *values: bytes) -> None:
    for value in values:
        batch = bytes(build_batch([Record(0, NOW_MS, b"key", value)]))
        log.append_as_leader(batch, 3, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)


def a_log(manager: LogManager) -> PartitionLog:
    log = manager.get_or_create(ORDERS, SMALL, now_ms=NOW_MS)
    log.assign_leader_epoch(3)
    append(log, *(b"%d" % number for number in range(5)))
    return log


def values_of(log: PartitionLog) -> list[bytes]:
    values, offset = [], log.log_start_offset
    while (run := log.read(offset, 1 << 20, isolation=Isolation.LOG_END).range) is not None:
        raw = run.read()
        for position, header in iterate_headers(raw):
            values += [record.value for record in read_records(raw, position, max_bytes=1 << 20)]
            offset = header.next_offset
    return values


def begin(manager: LogManager) -> LogMove:
    other = next(one for one in manager.directories if one is not manager.directory_of(ORDERS))
    move = manager.begin_move(ORDERS, other)
    move.prepare(NOW_MS)
    return move


def finish(manager: LogManager, move: LogMove) -> None:
    while True:
        while move.copy_some(NOW_MS, max_bytes=100):
            pass
        move.settle(NOW_MS)
        if move.is_ready_after_rest(NOW_MS):
            break
    manager.complete_move(move, now_ms=NOW_MS)()


def test_the_copy_takes_the_place_of_the_log_with_all_that_it_knows(tmp_path: Path) -> None:
    manager = a_manager(tmp_path)
    log = a_log(manager)
    log.delete_records(2)
    move = begin(manager)
    assert (move.size_in_bytes, move.offset_lag) == (0, 3)
    finish(manager, move)

    copy = manager.logs[ORDERS]
    assert copy is move.copy
    assert manager.moves == {}
    assert (copy.log_start_offset, copy.high_watermark, copy.log_end_offset) == (2, 5, 5)
    assert list(copy.epochs) == list(log.epochs)
    assert copy.producers is log.producers
    assert values_of(copy) == [b"2", b"3", b"4"]
    append(copy, b"more")
    manager.stop(NOW_MS)
    again = a_manager(tmp_path)
    assert again.directory_of(ORDERS).path == move.directory.path
    assert values_of(again.logs[ORDERS]) == [b"2", b"3", b"4", b"more"]
    again.stop(NOW_MS)


def test_what_is_cut_while_it_is_copied_is_not_in_the_copy(tmp_path: Path) -> None:
    manager = a_manager(tmp_path)
    log = a_log(manager)
    move = begin(manager)
    while move.copy_some(NOW_MS, max_bytes=100):
        pass
    log.truncate_to(2, now_ms=NOW_MS)
    append(log, b"other 2", b"other 3", b"other 4")
    finish(manager, move)

    assert values_of(manager.logs[ORDERS]) == [b"0", b"1", b"other 2", b"other 3", b"other 4"]
    manager.stop(NOW_MS)


def test_what_is_deleted_before_it_is_copied_is_left_out(tmp_path: Path) -> None:
    manager = a_manager(tmp_path)
    log = a_log(manager)
    move = begin(manager)
    log.delete_records(5)
    append(log, b"last")
    finish(manager, move)

    copy = manager.logs[ORDERS]
    assert (copy.log_start_offset, values_of(copy)) == (5, [b"last"])
    manager.stop(NOW_MS)


def test_a_copy_given_up_leaves_the_log_alone_and_goes(tmp_path: Path) -> None:
    manager = a_manager(tmp_path)
    log = a_log(manager)
    move = begin(manager)
    move.copy_some(NOW_MS)
    manager.cancel_move(move, now_ms=NOW_MS)()
    manager.remove_garbage(manager.due_garbage(NOW_MS))

    assert manager.logs[ORDERS] is log
    assert list(Path(move.directory.path).glob("orders*")) == []
    manager.stop(NOW_MS)


def test_a_copy_whose_log_is_nowhere_is_set_aside_and_never_deleted(tmp_path: Path) -> None:
    stray = tmp_path / "a" / f"orders-0.{'0' * 32}-future"
    stray.mkdir(parents=True)
    manager = a_manager(tmp_path)
    assert manager.report.set_aside == [str(stray)]
    assert manager.due_garbage(NOW_MS) == []
    manager.stop(NOW_MS)


def move_until_crash(directory: Path, changes: int) -> bool:
    """Move a log, and end at one of the changes to the disk; whether the move got so far."""
    files = FaultyFiles()
    manager = a_manager(directory, files)
    a_log(manager)
    files.crash_after(changes)
    try:
        finish(manager, begin(manager))
    except Crashed:
        return True
    finally:
        manager.abandon()
    return False


def test_a_crash_at_any_change_to_the_disk_loses_nothing(tmp_path: Path) -> None:
    for changes in count():
        directory = tmp_path / str(changes)
        directory.mkdir()
        has_crashed = move_until_crash(directory, changes)

        again = a_manager(directory)
        log = again.logs[ORDERS]
        assert values_of(log) == [b"0", b"1", b"2", b"3", b"4"]
        assert log.epochs.latest == 3
        again.abandon()
        if not has_crashed:
            break
    assert changes > 20
