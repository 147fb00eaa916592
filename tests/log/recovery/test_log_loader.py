"""Loading a directory: what is cut, what is rebuilt, what is left alone, what is refused."""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest

from log.given_logs import (
    NOW_MS,
    SMALL,
    a_batch,
    a_marker,
    after_clean_stop,
    after_crash,
    fill,
    log_bytes,
    offsets_and_values,
    open_log,
)
from odradek.common.error_codes import ErrorCode
from odradek.log.config import LogConfig
from odradek.log.errors import LogCorrupted
from odradek.log.leader_epochs import EpochEntry
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import Isolation
from odradek.log.recovery.log_loader import Checkpoints
from odradek.records.batch import iterate_headers


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


def index_files_of(path: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(path).items() if "index" in name}


def closed_log(path: Path, batches: int = 100, config: LogConfig = SMALL) -> PartitionLog:
    log = open_log(path, config)
    fill(log, batches // 2)
    fill(log, batches - batches // 2, leader_epoch=2)
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW_MS)
    return log


def transactions(log: PartitionLog, count: int) -> None:
    for number in range(count):
        producer_id = number % 3
        sequence = number // 3 * 2
        batch = a_batch(
            2,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
            value=b"x" * 300,
        )
        log.append_as_leader(batch, 0, now_ms=NOW_MS)
        marker = a_marker(producer_id, is_commit=number % 2 == 0)
        log.append_as_leader(marker, 0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)


# After a clean stop


def test_a_clean_stop_is_loaded_without_changing_a_byte(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert files_of(tmp_path) == before
    assert again.log_end_offset == again.high_watermark == again.recovery_point == 200
    assert list(again.epochs) == [EpochEntry(0, 0), EpochEntry(2, 100)]
    assert offsets_and_values(again) == offsets_and_values(log)


def test_a_scan_after_a_crash_changes_no_byte_of_a_healthy_log(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    again = open_log(tmp_path, checkpoints=after_crash())
    assert files_of(tmp_path) == before  # not even the indexes: a scan finds the same entries as appending
    assert again.log_end_offset == 200
    assert again.recovery_point == 0
    assert list(again.epochs) == list(log.epochs)


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_deleted_indexes_are_rebuilt(tmp_path: Path, kind: str, is_clean: bool) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    for file in tmp_path.glob(f"*.{kind}"):
        file.unlink()
    again = open_log(tmp_path, checkpoints=Checkpoints(200, 200, 0, is_clean))
    assert files_of(tmp_path) == before
    assert offsets_and_values(again) == offsets_and_values(log)


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_indexes_of_the_wrong_length_are_rebuilt(tmp_path: Path, kind: str) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    for file in tmp_path.glob(f"*.{kind}"):
        file.write_bytes(file.read_bytes() + b"\0")
    open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert files_of(tmp_path) == before


def test_an_index_that_disagrees_with_its_log_is_not_used(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    for file in tmp_path.glob("*.index"):
        content = bytearray(file.read_bytes())
        for position in range(7, len(content) - 8, 8):  # all entries but the last: off by three bytes
            content[position] ^= 3
        file.write_bytes(content)
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert offsets_and_values(again) == offsets_and_values(log)
    assert [again.offset_for_timestamp(NOW_MS + offset * 1000) for offset in range(0, 200, 7)]


def test_a_preallocated_index_left_by_a_killed_kafka_is_rebuilt(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    active = f"{log.segments.active.base_offset:020d}"
    for kind, size in (("index", 10_485_760), ("timeindex", 10_485_756)):
        os.truncate(tmp_path / f"{active}.{kind}", size)
    again = open_log(tmp_path, checkpoints=after_crash(recovery_point=150, high_watermark=200))
    assert again.log_end_offset == 200
    assert files_of(tmp_path) == before


def test_a_missing_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    transactions(log, 60)
    log.close(NOW_MS)
    before = files_of(tmp_path)
    indexes = sorted(tmp_path.glob("*.txnindex"))
    assert len(indexes) > 3
    indexes[1].unlink()
    indexes[2].write_bytes(indexes[2].read_bytes()[:-1])
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert files_of(tmp_path) == before
    expected = log.read(0, 10**6, isolation=Isolation.COMMITTED).aborted
    assert again.read(0, 10**6, isolation=Isolation.COMMITTED).aborted == expected


# After a crash


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    expected = offsets_and_values(log)
    active = Path(log.segments.active.log.path)
    active.write_bytes(active.read_bytes()[:-1])
    again = open_log(tmp_path, checkpoints=after_crash(recovery_point=100, high_watermark=150))
    assert again.log_end_offset == 198
    assert offsets_and_values(again) == expected[:198]
    assert again.recovery_point == 100
    assert list(iterate_headers(active.read_bytes()))
    fill(again, 3)
    assert [offset for offset, _ in offsets_and_values(again)] == list(range(204))


def test_damage_ends_the_log_and_later_segments_go(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    expected = offsets_and_values(log)
    victim = list(log.segments)[2]
    span = list(victim.walk())[3]
    path = Path(victim.log.path)
    content = bytearray(path.read_bytes())
    content[span.position + 80] ^= 0xFF
    path.write_bytes(content)
    again = open_log(tmp_path, checkpoints=after_crash())
    assert again.log_end_offset == span.base_offset
    assert offsets_and_values(again) == expected[: span.base_offset]
    assert [segment.base_offset for segment in again.segments] == [
        segment.base_offset for segment in log.segments if segment.base_offset <= span.base_offset
    ]
    assert again.epochs.latest == (2 if span.base_offset > 100 else 0)


def test_damage_below_the_high_watermark_is_reported_and_nothing_is_touched(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    victim = list(log.segments)[2]
    span = list(victim.walk())[3]
    path = Path(victim.log.path)
    content = bytearray(path.read_bytes())
    content[span.position + 80] ^= 0xFF
    path.write_bytes(content)
    before = log_bytes(tmp_path)
    checkpoints = after_crash(high_watermark=span.base_offset + 1)
    with pytest.raises(LogCorrupted) as raised:
        open_log(tmp_path, checkpoints=checkpoints)
    assert log_bytes(tmp_path) == before
    assert raised.value.path == str(path)
    assert raised.value.position == span.position
    assert raised.value.valid_end_offset == span.base_offset
    assert raised.value.expected_end_offset == span.base_offset + 1
    assert raised.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    repaired = open_log(tmp_path, checkpoints=checkpoints, may_cut_committed=True)
    assert repaired.log_end_offset == span.base_offset


def test_a_log_that_ends_below_the_high_watermark_is_reported_even_if_it_is_whole(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    last = Path(log.segments.active.log.path)
    last.write_bytes(b"")
    for is_clean in (True, False):
        with pytest.raises(LogCorrupted):
            open_log(tmp_path, checkpoints=Checkpoints(0, 200, 0, is_clean))
    shutil.rmtree(tmp_path)
    with pytest.raises(LogCorrupted):
        open_log(tmp_path, checkpoints=after_crash(high_watermark=1))


def test_a_log_start_above_the_log_end_is_reported_and_not_used(tmp_path: Path) -> None:
    closed_log(tmp_path)
    before = log_bytes(tmp_path)
    with pytest.raises(LogCorrupted):
        open_log(tmp_path, checkpoints=after_crash(log_start_offset=10**6))
    assert log_bytes(tmp_path) == before


def test_a_tail_of_zeroes_as_a_power_cut_leaves_it_is_cut(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    active = Path(log.segments.active.log.path)
    size = active.stat().st_size
    os.truncate(active, size + 5000)
    again = open_log(tmp_path, checkpoints=after_crash(high_watermark=200))
    assert again.log_end_offset == 200
    assert active.stat().st_size == size


def test_old_message_formats_are_not_taken_for_damage(tmp_path: Path) -> None:
    log = closed_log(tmp_path, batches=4)
    body = (
        struct.pack(">bb", 1, 0)
        + struct.pack(">q", NOW_MS)
        + struct.pack(">i", -1)
        + struct.pack(">i", 1)
        + b"v"
    )
    message = struct.pack(">I", zlib.crc32(body)) + body
    old = struct.pack(">qi", 8, len(message)) + message
    with open(log.segments.active.log.path, "ab") as file:
        file.write(old)
    before = log_bytes(tmp_path)
    with pytest.raises(LogCorrupted, match="format 0 or 1"):
        open_log(tmp_path, checkpoints=after_crash())
    assert log_bytes(tmp_path) == before


def test_a_damaged_segment_below_the_recovery_point_is_not_touched(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    first = Path(log.segments.first.log.path)
    content = bytearray(first.read_bytes())
    content[500] ^= 1
    first.write_bytes(content)
    again = open_log(tmp_path, checkpoints=after_crash(recovery_point=150, high_watermark=200))
    assert again.log_end_offset == 200
    assert first.read_bytes() == content


def test_deleted_records_may_have_an_epoch_that_the_epoch_file_has_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1, records=1)
    log.update_high_watermark(1)
    log.delete_records(1)
    fill(log, 1, records=1)
    log.truncate_to(1, now_ms=NOW_MS)
    assert list(log.epochs) == []
    again = open_log(tmp_path, checkpoints=after_crash(0, high_watermark=1, log_start_offset=1))
    assert (again.log_start_offset, again.log_end_offset) == (1, 1)


# Other files


def test_epochs_are_read_from_the_log_if_their_file_is_missing_or_damaged(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    checkpoint = tmp_path / "leader-epoch-checkpoint"
    before = checkpoint.read_bytes()
    for is_missing in (True, False):
        checkpoint.write_bytes(b"0\n9\n")
        if is_missing:
            checkpoint.unlink()
        again = open_log(tmp_path, checkpoints=after_clean_stop(log))
        assert list(again.epochs) == [EpochEntry(0, 0), EpochEntry(2, 100)]
        assert checkpoint.read_bytes() == before


def test_producer_state_is_the_same_from_any_snapshot_and_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(80):
        producer_id = number % 4
        batch = a_batch(
            3, producer_id=producer_id, producer_epoch=0, base_sequence=number // 4 * 3, value=b"x" * 200
        )
        log.append_as_leader(batch, 0, now_ms=NOW_MS)
    log.close(NOW_MS)
    expected = log.producers.entries
    snapshots = sorted(tmp_path.glob("*.snapshot"), reverse=True)
    assert len(snapshots) > 3
    for snapshot in snapshots:
        snapshot.unlink()
        again = open_log(tmp_path, checkpoints=after_clean_stop(log))
        found = again.producers.entries
        assert {p: (e.producer_epoch, e.batches[-1]) for p, e in found.items()} == {
            p: (e.producer_epoch, e.batches[-1]) for p, e in expected.items()
        }
    assert found == expected  # from the log alone: all five batches


def test_a_damaged_snapshot_is_replaced_by_an_older_one_and_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    transactions(log, 40)
    batch = a_batch(2, producer_id=77, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_leader(batch, 0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    log.close(NOW_MS)
    newest = max(tmp_path.glob("*.snapshot"))
    newest.write_bytes(newest.read_bytes()[:-1])
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert again.last_stable_offset == log.last_stable_offset == log.log_end_offset - 2
    assert again.producers.has_ongoing_transaction(77, 0)
    assert {p: e.last_sequence for p, e in again.producers.entries.items()} == {
        p: e.last_sequence for p, e in log.producers.entries.items()
    }


def test_a_snapshot_that_a_crash_has_torn_does_not_stay(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    transactions(log, 40)
    torn = [
        tmp_path / f"{offset:020d}.snapshot"
        for offset in (log.log_end_offset, log.segments.active.base_offset)
    ]
    for path in torn:
        path.write_bytes(b"")
    again = open_log(tmp_path)  # unclean: everything is scanned
    again.close(NOW_MS)
    assert all(path.stat().st_size > 0 for path in tmp_path.glob("*.snapshot"))
    assert set(torn) <= set(tmp_path.glob("*.snapshot"))


def test_leftovers_are_removed_orphans_too_and_foreign_files_stay(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    before = files_of(tmp_path)
    for name in (
        "00000000000000000500.log.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000700.index",
        "00000000000000000700.timeindex",
        "00000000000000000001.snapshot",
    ):
        (tmp_path / name).write_bytes(b"junk")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    (tmp_path / "sub").mkdir()
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert again.log_end_offset == 200
    (tmp_path / "sub").rmdir()
    assert files_of(tmp_path) == {**before, "notes.txt": b"mine"}


def test_a_finished_compaction_takes_its_place_and_an_unfinished_one_leaves_no_trace(tmp_path: Path) -> None:
    log = closed_log(tmp_path)
    first, second = list(log.segments)[:2]
    merged = Path(first.log.path).read_bytes() + Path(second.log.path).read_bytes()
    swap = tmp_path / "00000000000000000000.log.swap"
    swap.write_bytes(merged)
    (tmp_path / "00000000000000000000.index.swap").write_bytes(b"")
    (tmp_path / "00000000000000000000.timeindex.swap").write_bytes(b"")
    (tmp_path / f"{list(log.segments)[2].base_offset:020d}.log.cleaned").write_bytes(b"half")
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert not swap.exists()
    assert [s.base_offset for s in again.segments] == [s.base_offset for s in log.segments if s is not second]
    assert [offset for offset, _ in offsets_and_values(again)] == list(range(200))


def test_partition_metadata_has_the_topic_id_and_a_log_with_a_damaged_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_bytes(b"version: 0\ntopic_id: pONhCLIzS7yZRRkfEM-hbA")
    assert str(open_log(tmp_path).topic_id) == "a4e36108-b233-4bbc-9945-191f10cfa16c"
    (tmp_path / "partition.metadata").write_bytes(b"version: 0")
    with pytest.raises(LogCorrupted, match=r"partition.metadata is damaged .*delete the file"):
        open_log(tmp_path)
