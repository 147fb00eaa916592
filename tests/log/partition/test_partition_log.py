from __future__ import annotations

from pathlib import Path

import pytest

from log.given_logs import (
    NOW_MS,
    SMALL,
    a_batch,
    a_marker,
    after_clean_stop,
    fill,
    log_bytes,
    offsets_and_values,
    open_log,
    read_all,
)
from odradek.log.config import LogConfig
from odradek.log.errors import (
    OffsetOutOfRange,
)
from odradek.log.leader_epochs import EpochEnd, EpochEntry
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.reading import Isolation
from odradek.log.partition.timestamps import TimestampedOffset
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.batch import iterate_headers, read_header
from odradek.records.compression import Codec
from odradek.testing.faulty_files import FaultyFiles

# Reading


def test_a_read_gives_whole_batches_within_its_limit(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 100)
    one = log.segments.first.span_at(0).size
    for limit in (one, one + 1, 3 * one, 3 * one - 1, 10**6):
        part = log.read(0, limit, isolation=Isolation.LOG_END).range
        assert part is not None
        assert part.length <= max(limit, one)
        assert [header.size_in_bytes for _, header in iterate_headers(part.read())]


def test_the_first_batch_comes_even_if_it_is_too_big_unless_disabled(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 3)
    part = log.read(0, 1, isolation=Isolation.LOG_END).range
    assert part is not None
    assert len(list(iterate_headers(part.read()))) == 1
    assert log.read(0, 1, isolation=Isolation.LOG_END, min_one_batch=False).range is None


def test_a_read_in_the_middle_of_a_batch_begins_with_that_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 5, records=4)
    part = log.read(6, 1, isolation=Isolation.LOG_END).range
    assert part is not None
    assert read_header(part.read()).base_offset == 4


def test_a_consumer_sees_nothing_from_the_high_watermark_on(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 50, records=2)
    for high_watermark in (0, 2, 50, 51, 98, 100):
        log.update_high_watermark(high_watermark)
        seen = []
        offset = 0
        while (fetched := log.read(offset, 700)).range is not None:
            for _, header in iterate_headers(fetched.range.read()):
                seen.append(header.last_offset)
                offset = header.next_offset
        assert seen == [last for last in range(1, 100, 2) if last < high_watermark]


def test_reading_outside_of_the_log_says_what_there_is(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 5)
    assert log.read(10, 100, isolation=Isolation.LOG_END).range is None
    with pytest.raises(OffsetOutOfRange) as raised:
        log.read(11, 100)
    assert (raised.value.offset, raised.value.log_start_offset, raised.value.log_end_offset) == (11, 0, 10)
    with pytest.raises(OffsetOutOfRange):
        log.read(-1, 100)


def test_read_committed_ends_at_the_last_stable_offset_and_names_the_aborted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1, records=10)

    def send(producer_id: int, sequence: int) -> None:
        log.append_as_leader(
            a_batch(
                2,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            ),
            0,
            now_ms=NOW_MS,
        )

    def end(producer_id: int, *, is_commit: bool) -> None:
        marker = a_marker(producer_id, is_commit=is_commit)
        log.append_as_leader(marker, 0, now_ms=NOW_MS, origin=Origin.COORDINATOR)

    send(1, 0)  # 10, 11
    send(2, 0)  # 12, 13
    log.update_high_watermark(14)
    assert (log.high_watermark, log.last_stable_offset) == (14, 10)
    end(1, is_commit=False)  # 14
    log.update_high_watermark(15)
    assert log.last_stable_offset == 12
    send(2, 2)  # 15, 16
    end(2, is_commit=True)  # 17
    assert log.last_stable_offset == 12
    log.update_high_watermark(18)
    assert log.last_stable_offset == 18

    fetched = log.read(0, 10**6, isolation=Isolation.COMMITTED)
    assert fetched.aborted == (AbortedTxn(1, 10, 14, 12),)
    assert log.read(15, 10**6, isolation=Isolation.COMMITTED).aborted == ()
    assert log.read(0, 10**6, isolation=Isolation.HIGH_WATERMARK).aborted is None
    assert log.read(0, 10, isolation=Isolation.COMMITTED).aborted == ()  # the first batch only


# Time


@pytest.mark.parametrize("codec", list(Codec))
def test_a_timestamp_leads_to_the_exact_first_record(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path)
    for number in range(60):
        records = build_rising(number, codec)
        log.append_as_leader(records, 0, now_ms=NOW_MS + number * 100)
    times = [(record.timestamp_ms, record.offset) for record in read_all(log)]
    for wanted in range(NOW_MS - 50, NOW_MS + 6100, 37):
        expected = next(((ms, offset) for ms, offset in times if ms >= wanted), None)
        found = log.offset_for_timestamp(wanted)
        assert (found and (found.timestamp_ms, found.offset)) == expected


def build_rising(number: int, codec: Codec) -> bytearray:
    from odradek.records.builder import build_batch
    from odradek.records.kernels.record_objects import Record

    times = [NOW_MS + number * 100 + delta for delta in (0, 90, 30, 150)]
    return build_batch([Record(i, ms, b"k", b"v" * 40) for i, ms in enumerate(times)], codec=codec)


def test_the_youngest_record_is_found_exactly(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.offset_of_max_timestamp() is None
    for number in range(60):
        log.append_as_leader(build_rising(number if number != 20 else 99, Codec.NONE), 2, now_ms=NOW_MS)
    found = log.offset_of_max_timestamp()
    assert found == TimestampedOffset(NOW_MS + 99 * 100 + 150, 20 * 4 + 3, 2)


# Truncation


@pytest.mark.parametrize("target", [0, 1, 2, 7, 50, 51, 199, 200, 399])
def test_truncation_leaves_the_log_as_if_the_rest_had_never_been(tmp_path: Path, target: int) -> None:
    log = open_log(tmp_path / "truncated")
    fill(log, 200)
    assert log.truncate_to(target, now_ms=NOW_MS)
    end = target - target % 2  # batches of two
    other = open_log(tmp_path / "other")
    fill(other, end // 2)
    assert log.log_end_offset == end
    assert offsets_and_values(log) == offsets_and_values(other)
    fill(log, 10)
    fill(other, 10)
    assert log_bytes(tmp_path / "truncated") == log_bytes(tmp_path / "other")
    assert log.truncate_to(10_000, now_ms=NOW_MS) is False


def test_truncation_takes_back_epochs_watermark_recovery_point_and_producers(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(0, 40, 2):
        batch = a_batch(2, producer_id=3, producer_epoch=0, base_sequence=sequence, value=b"x" * 300)
        log.append_as_leader(batch, sequence // 20, now_ms=NOW_MS)
    log.flush(NOW_MS)
    log.update_high_watermark(40)
    log.truncate_to(10, now_ms=NOW_MS)
    assert (log.high_watermark, log.recovery_point, log.log_end_offset) == (10, 10, 10)
    assert list(log.epochs) == [EpochEntry(0, 0)]
    assert log.producers.entries[3].last_sequence == 9
    batch = a_batch(2, producer_id=3, producer_epoch=0, base_sequence=10)
    assert log.append_as_leader(batch, 0, now_ms=NOW_MS).base_offset == 10


def test_producers_that_were_truncated_away_do_not_come_back_from_a_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for sequence in range(40):
        batch = a_batch(producer_id=3, producer_epoch=0, base_sequence=sequence, value=b"x" * 300)
        log.append_as_leader(batch, 0, now_ms=NOW_MS)
    log.close(NOW_MS)  # leaves a snapshot at 40
    log = open_log(tmp_path, checkpoints=after_clean_stop(log))
    log.truncate_to(0, now_ms=NOW_MS)
    fill(log, 30)
    log.close(NOW_MS)
    log.snapshots.remove([log.log_end_offset])
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert again.producers.entries == {}


def test_a_log_can_start_again_at_any_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 100)
    log.truncate_fully_and_start_at(5000, now_ms=NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5000, 5000, 5000)
    assert list(log.epochs) == []
    fill(log, 2, leader_epoch=7)
    assert [record.offset for record in read_all(log)] == [5000, 5001, 5002, 5003]
    log.close(NOW_MS)
    again = open_log(tmp_path, checkpoints=after_clean_stop(log))
    assert (again.log_start_offset, again.log_end_offset) == (5000, 5004)


def test_where_an_epoch_ended_is_known(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 5, leader_epoch=0)
    fill(log, 5, leader_epoch=2)
    log.assign_leader_epoch(4)
    assert log.end_offset_for_epoch(0) == EpochEnd(0, 10)
    assert log.end_offset_for_epoch(1) == EpochEnd(0, 10)
    assert log.end_offset_for_epoch(2) == EpochEnd(2, 20)
    assert log.end_offset_for_epoch(4) == EpochEnd(4, 20)


# Deletion


def test_deleted_records_cannot_be_read_and_their_segments_go(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 100)
    log.update_high_watermark(150)
    with pytest.raises(OffsetOutOfRange):
        log.delete_records(151)
    assert log.delete_records(75) == 75
    assert log.delete_records(20) == 75
    with pytest.raises(OffsetOutOfRange):
        log.read(74, 100)
    segments = len(log.segments)
    log.enforce_retention(NOW_MS)
    assert len(log.segments) < segments
    assert log.log_start_offset == 75
    assert [record.offset for record in read_all(log)] == list(range(75, 200))


def test_an_expired_active_segment_is_rolled_first_and_the_log_never_has_none(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(retention_ms=1000))
    fill(log, 50)
    log.update_high_watermark(100)
    log.enforce_retention(NOW_MS + 10**9)
    assert [segment.base_offset for segment in log.segments] == [100]
    assert (log.log_start_offset, log.log_end_offset) == (100, 100)
    assert log.enforce_retention(NOW_MS + 2 * 10**9) is None
    fill(log, 1)
    assert [record.offset for record in read_all(log)] == [100, 101]


# Flushing


def test_flush_by_messages_and_by_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(flush_messages=10, flush_ms=5000))
    assert not log.wants_flush(NOW_MS + 10**6)
    log.append_as_leader(a_batch(9), 0, now_ms=NOW_MS)
    assert not log.wants_flush(NOW_MS)
    assert log.wants_flush(NOW_MS + 5000)
    log.append_as_leader(a_batch(1), 0, now_ms=NOW_MS)
    assert log.wants_flush(NOW_MS)
    log.flush(NOW_MS)
    assert log.recovery_point == 10
    assert not log.wants_flush(NOW_MS + 10**6)


def test_a_flush_syncs_every_unflushed_segment_with_its_indexes(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, 60)
    assert log.wants_flush(NOW_MS)  # closed segments want to be synced, as with Kafka
    files.synced.clear()
    log.flush(NOW_MS)
    for segment in log.segments:
        assert {file.path for file in segment.files()} <= set(files.synced)
    assert str(tmp_path) in files.synced
    files.synced.clear()
    fill(log, 1)
    log.flush(NOW_MS)
    assert {Path(path).stem for path in files.synced} == {f"{log.segments.active.base_offset:020d}"}


def test_a_truncation_during_a_flush_keeps_the_recovery_point_low(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 10)
    job = log.begin_flush(NOW_MS)
    log.truncate_to(4, now_ms=NOW_MS)
    fill(log, 10)
    job.run()
    log.complete_flush(job)
    assert log.recovery_point == 0


def test_an_epoch_that_nobody_wrote_in_is_dropped_by_a_truncation_to_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_leader(a_batch(2), 1, NOW_MS)
    log.assign_leader_epoch(4)

    assert not log.truncate_to(2, now_ms=NOW_MS)

    assert list(log.epochs) == [EpochEntry(1, 0)]
    log.close(NOW_MS)
