"""Several log directories: placement, loading, clean stops, locks, failed disks, deletion, foreign names."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from log.given_logs import NOW_MS, SMALL, fill, log_bytes, offsets_and_values
from odradek.common.errors import ConfigError, KafkaError
from odradek.common.ids import TopicPartition
from odradek.log.checkpoints import MetaProperties, decode_offsets, encode_meta_properties
from odradek.log.config import LogConfig
from odradek.log.directories.log_dir_errors import UnusableDirectory
from odradek.log.directories.log_manager import LogManager
from odradek.log.directories.manager_config import LogManagerConfig
from odradek.log.errors import DirectoryLocked, InconsistentMetaProperties, LogCorrupted, StorageError
from odradek.log.files.file_system import FileSystem
from odradek.testing.faulty_files import FaultyFiles

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
TOPIC_ID = UUID("a4e36108-b233-4bbc-9945-191f10cfa16c")


def small(topic: str) -> LogConfig:
    return SMALL


def a_manager(tmp_path: Path, directories: int = 2, **options: object) -> LogManager:
    paths = [str(tmp_path / f"disk{number}") for number in range(directories)]
    return LogManager(paths, broker_id=1, cluster_id=CLUSTER, **options)  # type: ignore[arg-type]


def started(tmp_path: Path, directories: int = 2, **options: object) -> LogManager:
    manager = a_manager(tmp_path, directories, **options)
    manager.start(NOW_MS, small)
    return manager


def partition(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def create(manager: LogManager, number: int) -> None:
    manager.get_or_create(partition(number), SMALL, now_ms=NOW_MS, topic_id=TOPIC_ID)


# Placement


def test_a_new_partition_goes_where_the_fewest_are(tmp_path: Path) -> None:
    manager = started(tmp_path, 3)
    for number in range(7):
        create(manager, number)
    counts = sorted(len(list(manager.logs_in(directory))) for directory in manager.directories)
    assert counts == [2, 2, 3]
    assert (tmp_path / "disk0" / "orders-0" / "partition.metadata").exists()
    manager.stop(NOW_MS)


def test_the_same_partition_is_made_once(tmp_path: Path) -> None:
    manager = started(tmp_path)
    first = manager.get_or_create(partition(0), SMALL, now_ms=NOW_MS)
    assert manager.get_or_create(partition(0), SMALL, now_ms=NOW_MS) is first
    manager.stop(NOW_MS)


def test_a_bad_topic_name_never_becomes_a_path(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for name in ("../evil", "a/b", "", "x" * 250):
        with pytest.raises(KafkaError):
            manager.get_or_create(TopicPartition(name, 0), SMALL, now_ms=NOW_MS)
    manager.stop(NOW_MS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk0", "disk1"]


def test_directories_must_be_given_and_differ(tmp_path: Path) -> None:
    for paths in ([], [str(tmp_path), str(tmp_path) + "/."]):
        with pytest.raises(ConfigError):
            LogManager(paths, broker_id=1, cluster_id=CLUSTER)


# Stop and start


def test_a_clean_stop_is_loaded_without_a_scan_and_the_mark_is_taken_away(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for number in range(4):
        create(manager, number)
        fill(manager.logs[partition(number)], 20)
        manager.logs[partition(number)].update_high_watermark(40)
    expected = {tp: offsets_and_values(log) for tp, log in manager.logs.items()}
    manager.stop(NOW_MS, broker_epoch=7)
    mark = tmp_path / "disk0" / ".kafka_cleanshutdown"
    assert mark.read_bytes() == b'{"version":0,"brokerEpoch":7}'
    recovery_points = decode_offsets((tmp_path / "disk0" / "recovery-point-offset-checkpoint").read_bytes())
    assert set(recovery_points.values()) == {40}

    again = started(tmp_path)
    assert not mark.exists()
    assert {tp: offsets_and_values(log) for tp, log in again.logs.items()} == expected
    assert all(log.recovery_point == 40 == log.high_watermark for log in again.logs.values())
    assert all(log.topic_id == TOPIC_ID for log in again.logs.values())
    again.stop(NOW_MS)


def test_without_a_clean_stop_everything_from_the_checkpoint_on_is_scanned(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    log = manager.logs[partition(0)]
    fill(log, 20)
    log.flush(NOW_MS)
    log.update_high_watermark(30)
    for job in manager.checkpoints():
        job.run()
    fill(log, 5)
    with open(log.segments.active.log.path, "ab") as file:
        file.write(b"torn")
    manager.abandon()
    again = started(tmp_path)
    loaded = again.logs[partition(0)]
    assert (loaded.log_end_offset, loaded.high_watermark, loaded.recovery_point) == (50, 30, 40)
    again.abandon()


def test_a_checkpoint_is_written_when_it_has_something_new_to_say(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    assert write_checkpoints(manager) == {
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
    }
    assert write_checkpoints(manager) == set()
    log = manager.logs[partition(0)]
    fill(log, 20)
    log.update_high_watermark(30)
    assert write_checkpoints(manager) == {"replication-offset-checkpoint"}
    log.flush(NOW_MS)
    assert write_checkpoints(manager) == {"recovery-point-offset-checkpoint"}
    manager.abandon()


def write_checkpoints(manager: LogManager) -> set[str]:
    jobs = manager.checkpoints()
    for job in jobs:
        job.run()
    return {job.name for job in jobs}


@pytest.mark.parametrize("call", ["open", "sync", "rename", "sync_directory"])
def test_a_checkpoint_that_could_not_be_written_is_tried_again(tmp_path: Path, call: str) -> None:
    files = FaultyFiles()
    manager = started(tmp_path, files=files)
    create(manager, 0)
    write_checkpoints(manager)
    fill(manager.logs[partition(0)], 20)
    manager.logs[partition(0)].update_high_watermark(30)

    files.fault = lambda called, path: errno.EIO if called == call else 0
    with pytest.raises(OSError, match="Input/output error"):
        write_checkpoints(manager)
    files.fault = lambda called, path: 0
    assert write_checkpoints(manager) == {"replication-offset-checkpoint"}
    manager.abandon()


def test_loading_in_parallel_finds_the_same(tmp_path: Path) -> None:
    manager = started(tmp_path, config=LogManagerConfig(num_recovery_threads_per_data_dir=4))
    for number in range(20):
        create(manager, number)
        fill(manager.logs[partition(number)], 1 + number)
    manager.abandon()
    again = started(tmp_path, config=LogManagerConfig(num_recovery_threads_per_data_dir=4))
    assert {tp.partition: log.log_end_offset for tp, log in again.logs.items()} == {
        number: 2 * (1 + number) for number in range(20)
    }
    again.abandon()


def test_the_log_start_offset_survives(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    fill(manager.logs[partition(0)], 10)
    manager.logs[partition(0)].update_high_watermark(20)
    manager.logs[partition(0)].delete_records(5)
    manager.stop(NOW_MS)
    again = started(tmp_path)
    assert again.logs[partition(0)].log_start_offset == 5
    again.stop(NOW_MS)


@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"],
)
def test_a_damaged_checkpoint_costs_a_scan_and_no_record(tmp_path: Path, name: str) -> None:
    manager = started(tmp_path, 1)
    create(manager, 0)
    fill(manager.logs[partition(0)], 30)
    expected = offsets_and_values(manager.logs[partition(0)])
    manager.stop(NOW_MS)
    (tmp_path / "disk0" / name).write_bytes(b"0\n17\ngarbage")
    again = started(tmp_path, 1)
    assert offsets_and_values(again.logs[partition(0)]) == expected
    again.stop(NOW_MS)


# Whose directory


def test_two_brokers_cannot_use_one_directory(tmp_path: Path) -> None:
    manager = started(tmp_path)
    with pytest.raises(DirectoryLocked, match="in use"):
        a_manager(tmp_path).start(NOW_MS, small)
    program = (
        "import sys; from odradek.log.directories.log_manager import LogManager\n"
        "from odradek.log.config import LogConfig\n"
        "m = LogManager([sys.argv[1]], broker_id=1, cluster_id=sys.argv[2])\n"
        "try: m.start(0, lambda topic: LogConfig())\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    reported = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "disk0"), CLUSTER],
        capture_output=True,
        text=True,
        check=True,
    )
    assert reported.stdout.strip() == "DirectoryLocked"
    manager.stop(NOW_MS)
    started(tmp_path).stop(NOW_MS)


@pytest.mark.parametrize("owner", [MetaProperties(2, CLUSTER), MetaProperties(1, "another-cluster")])
def test_a_directory_of_another_broker_or_cluster_is_refused(tmp_path: Path, owner: MetaProperties) -> None:
    (tmp_path / "disk0").mkdir()
    (tmp_path / "disk0" / "meta.properties").write_bytes(encode_meta_properties(owner))
    with pytest.raises(InconsistentMetaProperties):
        a_manager(tmp_path).start(NOW_MS, small)


def test_damaged_meta_properties_are_refused_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "disk0").mkdir()
    (tmp_path / "disk0" / "meta.properties").write_bytes(b"version=0\nbroker")
    with pytest.raises(InconsistentMetaProperties):
        a_manager(tmp_path).start(NOW_MS, small)
    assert (tmp_path / "disk0" / "meta.properties").read_bytes() == b"version=0\nbroker"


# Bad disks


def test_a_failed_directory_goes_offline_and_the_others_serve(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = started(tmp_path, files=files)
    for number in range(4):
        create(manager, number)
        fill(manager.logs[partition(number)], 3)
    files.fault = lambda call, path: errno.EIO if "disk0" in path and call == "write_at" else 0
    victim = next(log for log in manager.logs_in(manager.directories[0]))
    with pytest.raises(StorageError) as raised:
        fill(victim, 1)
    lost = manager.report_failure(victim.partition, raised.value)
    assert len(lost) == 2
    assert [directory.path for directory in manager.online_directories()] == [str(tmp_path / "disk1")]
    assert len(manager.logs) == 2
    for log in manager.logs.values():
        fill(log, 3)
    with pytest.raises(StorageError):
        manager.get_or_create(lost[0], SMALL, now_ms=NOW_MS)
    create(manager, 9)
    assert manager.directory_of(partition(9)) is manager.directories[1]
    manager.stop(NOW_MS)
    assert not (tmp_path / "disk0" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "disk1" / ".kafka_cleanshutdown").exists()


def test_a_full_disk_does_not_take_its_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = started(tmp_path, files=files)
    create(manager, 0)
    log = manager.logs[partition(0)]
    files.free_bytes = 10
    with pytest.raises(StorageError) as raised:
        fill(log, 1)
    assert manager.report_failure(partition(0), raised.value) == []
    assert len(manager.online_directories()) == 2
    files.free_bytes = None
    fill(log, 1)
    manager.stop(NOW_MS)


def test_a_new_partition_goes_to_a_disk_that_has_room(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    fuller = manager.directory_of(partition(0))
    emptier = next(one for one in manager.directories if one is not fuller)
    emptier.notice_full(OSError(errno.ENOSPC, "full"))
    create(manager, 1)
    assert manager.directory_of(partition(1)) is fuller
    assert fuller is not None
    fuller.notice_full(OSError(errno.ENOSPC, "full"))
    create(manager, 2)
    assert manager.directory_of(partition(2)) is emptier  # all are full: whoever has the fewest tries
    manager.stop(NOW_MS)


def test_a_partition_that_could_not_be_made_can_be_deleted(tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = started(tmp_path, files=files)
    files.fault = failing_once("make_directory", "orders-0")
    with pytest.raises(StorageError):
        create(manager, 0)
    manager.delete(partition(0), now_ms=NOW_MS)
    assert len(manager.online_directories()) == 2
    create(manager, 0)
    manager.stop(NOW_MS)


def test_a_directory_that_cannot_be_read_at_the_start_is_offline(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for number in range(2):
        create(manager, number)
        fill(manager.logs[partition(number)], 3)
    manager.abandon()
    files = FaultyFiles()
    files.fault = lambda call, path: errno.EIO if "disk1" in path and call.startswith("read") else 0
    again = started(tmp_path, files=files)
    assert len(again.logs) == 1
    assert len(again.online_directories()) == 1
    again.abandon()


def test_a_replica_that_may_be_on_an_offline_disk_is_not_created_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fault = lambda call, path: errno.EIO if "disk1" in path and call == "open" else 0
    manager = started(tmp_path, files=files)
    with pytest.raises(StorageError) as raised:
        manager.begin_creation(partition(0), SMALL, now_ms=NOW_MS, is_new=False)
    assert raised.value.errno == errno.EIO
    assert manager.directory_of(partition(0)) is None
    create(manager, 0)  # a new one cannot be there
    manager.abandon()


def test_with_every_directory_failed_there_is_no_start(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.fault = lambda call, path: errno.EROFS if call == "open" else 0
    with pytest.raises(UnusableDirectory, match="disk0: its file system is read-only; mount it for writing"):
        a_manager(tmp_path, files=files).start(NOW_MS, small)


# Damage


def damaged(tmp_path: Path) -> Path:
    """A stopped broker with one damaged and one healthy partition; the damaged one's log file."""
    manager = started(tmp_path, 1)
    for number in range(2):
        create(manager, number)
        fill(manager.logs[partition(number)], 10)
        manager.logs[partition(number)].update_high_watermark(20)
    manager.stop(NOW_MS)
    (tmp_path / "disk0" / ".kafka_cleanshutdown").unlink()
    (tmp_path / "disk0" / "recovery-point-offset-checkpoint").unlink()
    path = tmp_path / "disk0" / "orders-0" / ("0" * 20 + ".log")
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    return path


def test_a_damaged_partition_is_offline_and_its_neighbours_serve(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    before = path.read_bytes()
    manager = a_manager(tmp_path, 1)
    report = manager.start(NOW_MS, small)
    assert list(report.corrupted) == [partition(0)]
    assert list(manager.logs) == [partition(1)]
    with pytest.raises(LogCorrupted):
        manager.get_or_create(partition(0), SMALL, now_ms=NOW_MS)
    manager.stop(NOW_MS)
    assert path.read_bytes() == before
    # What was known of it is not forgotten, or the next start would cut it in silence.
    marks = decode_offsets((tmp_path / "disk0" / "replication-offset-checkpoint").read_bytes())
    assert marks == {partition(0): 20, partition(1): 20}


def test_a_quarantined_partition_is_kept_and_can_be_created_again(tmp_path: Path) -> None:
    path = damaged(tmp_path)
    before = path.read_bytes()
    manager = a_manager(tmp_path, 1)
    manager.start(NOW_MS, small)
    aside = manager.begin_quarantine(partition(0))()
    assert Path(aside).name.endswith("-stray")
    assert (Path(aside) / path.name).read_bytes() == before
    log = manager.get_or_create(partition(0), SMALL, now_ms=NOW_MS)
    assert log.log_end_offset == 0
    manager.stop(NOW_MS)
    again = a_manager(tmp_path, 1)
    report = again.start(NOW_MS, small)
    assert report.set_aside == [aside]
    assert set(again.logs) == {partition(0), partition(1)}
    again.stop(NOW_MS)


def test_unknown_directories_and_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "disk0" / "lost+found").mkdir(parents=True)
    (tmp_path / "disk0" / "lost+found" / "keep").write_text("me")
    (tmp_path / "disk0" / "orders-x").mkdir()
    (tmp_path / "disk0" / "README").write_text("mine")
    manager = a_manager(tmp_path)
    report = manager.start(NOW_MS, small)
    manager.stop(NOW_MS)
    assert sorted(Path(path).name for path in report.unknown) == ["lost+found", "orders-x"]
    assert (tmp_path / "disk0" / "lost+found" / "keep").read_text() == "me"
    assert (tmp_path / "disk0" / "README").read_text() == "mine"


def test_a_partition_that_should_not_be_here_is_set_aside_never_deleted(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for number in range(3):
        create(manager, number)
        fill(manager.logs[partition(number)], 3)
    expected = log_bytes(manager.logs[partition(1)].directory.path)
    (aside,) = manager.set_aside_strays(lambda log: log.partition != partition(1))
    assert set(manager.logs) == {partition(0), partition(2)}
    assert log_bytes(aside) == expected
    manager.remove_garbage(manager.due_garbage(NOW_MS + 10**9))
    manager.stop(NOW_MS)
    assert log_bytes(aside) == expected


def test_a_partition_in_two_directories_serves_where_more_of_it_is(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    fill(manager.logs[partition(0)], 5)
    directory = manager.directory_of(partition(0))
    manager.stop(NOW_MS)
    assert directory is not None
    other = next(d for d in manager.directories if d is not directory)
    os.makedirs(other.join("orders-0"))
    again = started(tmp_path)
    assert again.logs[partition(0)].log_end_offset == 10
    assert len(again.report.set_aside) == 1
    again.stop(NOW_MS)


# Deletion and housekeeping


def test_a_deleted_partition_is_renamed_at_once_and_removed_later(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    fill(manager.logs[partition(0)], 5)
    manager.logs[partition(0)].update_high_watermark(10)
    reading = manager.logs[partition(0)].read(0, 10**6).range
    manager.delete(partition(0), now_ms=NOW_MS)
    assert manager.get(partition(0)) is None
    (doomed,) = [path for disk in tmp_path.iterdir() for path in disk.glob("orders-0.*-delete")]
    assert manager.due_garbage(NOW_MS + 59_999) == []
    assert reading is not None
    assert len(reading.read()) == reading.length
    create(manager, 0)  # the topic may come back meanwhile
    manager.remove_garbage(manager.due_garbage(NOW_MS + 60_000))
    assert not doomed.exists()
    assert manager.logs[partition(0)].log_end_offset == 0
    manager.stop(NOW_MS)


def test_files_of_a_deleted_partition_are_closed_when_they_are_removed(tmp_path: Path) -> None:
    manager = started(tmp_path)
    create(manager, 0)
    fill(manager.logs[partition(0)], 5)
    create(manager, 1)
    fill(manager.logs[partition(1)], 5)
    manager.delete(partition(0), now_ms=NOW_MS)
    (doomed,) = [path for disk in tmp_path.iterdir() for path in disk.glob("orders-0.*-delete")]

    def open_files() -> list[str]:
        found = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        return [path for path in found if str(tmp_path) in path]

    assert any(str(doomed) in path for path in open_files())
    manager.remove_garbage(manager.due_garbage(NOW_MS + 60_000))
    assert not any(str(doomed) in path for path in open_files())
    assert any("orders-1" in path for path in open_files())
    manager.stop(NOW_MS)


def test_a_deletion_that_a_crash_interrupted_is_finished(tmp_path: Path) -> None:
    manager = started(tmp_path, 1)
    create(manager, 0)
    manager.delete(partition(0), now_ms=NOW_MS)
    manager.abandon()
    again = started(tmp_path, 1)
    assert again.logs == {}
    again.remove_garbage(again.due_garbage(NOW_MS))
    assert not list((tmp_path / "disk0").glob("*-delete"))
    again.stop(NOW_MS)


def test_retention_runs_over_all_logs(tmp_path: Path) -> None:
    manager = started(tmp_path)
    for number in range(3):
        log = manager.get_or_create(partition(number), SMALL.replace(retention_bytes=5000), now_ms=NOW_MS)
        fill(log, 200)
        log.update_high_watermark(400)
    assert manager.enforce_retention(NOW_MS) > 3
    due = manager.due_garbage(NOW_MS + 60_000)
    assert due
    manager.remove_garbage(due)
    assert not [path for disk in tmp_path.iterdir() for path in disk.glob("*/*.deleted")]
    manager.stop(NOW_MS)


def test_more_partitions_than_file_handles_can_be_served(tmp_path: Path) -> None:
    manager = started(tmp_path, 1, handle_limit=32)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(150):
        create(manager, number)
        fill(manager.logs[partition(number)], 2)
    assert len(os.listdir("/proc/self/fd")) - before <= 32
    assert all(len(offsets_and_values(log)) == 4 for log in manager.logs.values())
    manager.stop(NOW_MS)


def failing_once(call_name: str, part: str) -> Callable[[str, str], int]:
    left = [1]

    def fault(call: str, path: str) -> int:
        if call == call_name and part in path and left[0]:
            left[0] -= 1
            return errno.ENOSPC
        return 0

    return fault


@pytest.mark.parametrize(
    ("call", "part"), [("make_directory", "orders-0"), ("write_at", "partition.metadata")]
)
def test_a_partition_that_could_not_be_made_can_be_made_later(tmp_path: Path, call: str, part: str) -> None:
    files = FaultyFiles()
    manager = started(tmp_path, files=files)
    files.fault = failing_once(call, part)
    with pytest.raises(StorageError):
        create(manager, 0)
    create(manager, 0)
    assert manager.logs[partition(0)].log_end_offset == 0
    manager.stop(NOW_MS)
    assert isinstance(manager.files, FileSystem)
