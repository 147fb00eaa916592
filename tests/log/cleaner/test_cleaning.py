from __future__ import annotations

import os
from pathlib import Path

import pytest

from log.cleaner.given_compaction import (
    append,
    batches_of,
    clean,
    compacted_log,
    end_transaction,
    manager_of,
    records_of,
    roll,
)
from log.given_logs import NOW_MS, a_batch, after_clean_stop, after_crash, open_log
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.config import LogConfig
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery.segment_scan import scan_segment
from odradek.log.segment.segment import Segment
from odradek.records.batch import TimestampType, read_header
from odradek.records.compression import Codec

pytestmark = pytest.mark.usefixtures("either_way")


def test_the_last_value_of_each_key_stays_at_its_offset(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    append(log, [(b"a", b"2")])
    append(log, [(b"b", b"2"), (b"a", b"3")])

    outcome = clean(log)

    assert records_of(log) == [(2, b"c", b"1"), (4, b"b", b"2"), (5, b"a", b"3")]
    assert outcome.statistics.records_read == 6
    assert outcome.statistics.records_written == 3
    assert outcome.statistics.map_entries == 3


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_keep_their_offsets_codec_and_producer(tmp_path: Path, codec: Codec) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"old"), (b"b", b"stays"), (b"a", b"old")], codec=codec, producer=(5, 1, 0))
    append(log, [(b"a", b"new")], codec=codec, producer=(5, 1, 3))
    before = batches_of(log)[0].header

    clean(log)

    header, records = batches_of(log)[0].header, batches_of(log)[0].records
    assert [(record.offset, record.timestamp_ms, record.key) for record in records] == [(1, NOW_MS + 1, b"b")]
    assert (header.base_offset, header.last_offset_delta) == (0, 2)
    assert (header.codec, header.producer_id, header.producer_epoch, header.base_sequence) == (codec, 5, 1, 0)
    assert (header.record_count, header.max_timestamp_ms) == (1, NOW_MS + 1)
    assert header.partition_leader_epoch == before.partition_leader_epoch


def test_a_batch_that_loses_nothing_is_copied_byte_for_byte(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    for number, codec in enumerate(Codec):
        append(log, [(b"%d" % number, b"x"), (b"%d!" % number, b"y")], codec=codec)
    before = log.segments.first.log.read(0, 1 << 20)

    clean(log)

    assert log.segments.first.log.read(0, 1 << 20) == before


def test_cleaning_twice_changes_nothing_more(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    for number in range(60):
        append(log, [(b"%d" % (number % 7), b"x" * 50), (b"%d" % (number % 11), b"y")])
    clean(log)
    once = records_of(log)

    append(log, [(b"other", b"z")])
    clean(log)

    assert records_of(log) == [*once, (120, b"other", b"z")]


def test_offsets_and_times_are_found_in_a_cleaned_log(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    for number in range(200):
        append(log, [(b"%d" % (number % 50), b"x" * 30)], now_ms=NOW_MS + number)

    clean(log)

    kept = records_of(log)
    headers = [left.header for left in batches_of(log)]
    for offset in range(200):
        found = log.read(offset, 1).range
        assert found is not None
        assert read_header(found.read()) == next(one for one in headers if one.last_offset >= offset)
        time = log.offset_for_timestamp(NOW_MS + offset)
        assert time is not None
        assert time.offset == next(kept_offset for kept_offset, *_ in kept if kept_offset >= offset)
    for segment in log.segments:
        assert scan_segment(segment).problem is None


# Tombstones


def test_a_tombstone_stays_for_the_retention_and_then_goes(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, delete_retention_ms=1000)
    append(log, [(b"a", b"1"), (b"b", b"1")])
    append(log, [(b"a", None), (b"c", b"1")])

    clean(log, NOW_MS + 5000)
    left = batches_of(log)
    assert records_of(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert left[1].header.has_delete_horizon
    assert left[1].header.base_timestamp_ms == NOW_MS + 6000
    assert [record.timestamp_ms for record in left[1].records] == [NOW_MS, NOW_MS + 1]

    append(log, [(b"d", b"1")])
    clean(log, NOW_MS + 5999)
    assert (2, b"a", None) in records_of(log)

    append(log, [(b"e", b"1")])
    clean(log, NOW_MS + 6000)
    assert records_of(log) == [(1, b"b", b"1"), (3, b"c", b"1"), (4, b"d", b"1"), (5, b"e", b"1")]


@pytest.mark.parametrize("codec", list(Codec))
def test_a_delete_horizon_is_set_once_and_does_not_touch_the_times(tmp_path: Path, codec: Codec) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", None), (b"b", b"1"), (b"c", b"1")], codec=codec)
    clean(log, NOW_MS)
    horizon_ms = batches_of(log)[0].header.base_timestamp_ms

    append(log, [(b"c", b"2")])
    clean(log, NOW_MS + 500)

    left = batches_of(log)[0]
    assert left.header.base_timestamp_ms == horizon_ms == NOW_MS + 1000
    assert [(r.key, r.timestamp_ms) for r in left.records] == [(b"a", NOW_MS), (b"b", NOW_MS + 1)]
    assert left.header.codec is codec


def test_log_append_time_survives_a_delete_horizon(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, message_timestamp_type="LogAppendTime")
    append(log, [(b"a", b"1"), (b"a", None), (b"b", b"1")], now_ms=NOW_MS + 77)

    clean(log, NOW_MS + 100)

    left = batches_of(log)[0]
    assert left.header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp_ms for record in left.records] == [NOW_MS + 77, NOW_MS + 77]


def test_a_tombstone_outlives_the_value_that_it_deletes(tmp_path: Path) -> None:
    """Even when the value was cleaned before, and the tombstone's horizon passes between two runs."""
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    clean(log)
    append(log, [(b"a", None)])
    clean(log, NOW_MS + 10_000)

    assert records_of(log) == [(1, b"a", None)]


# Transactions


def test_aborted_records_go_and_do_not_shadow_others(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"committed"), (b"b", b"old")])
    append(log, [(b"a", b"aborted")], producer=(7, 0, 0), is_transactional=True)
    end_transaction(log, 7, is_commit=False)
    append(log, [(b"b", b"new")], producer=(7, 0, 1), is_transactional=True)
    end_transaction(log, 7, is_commit=True)

    clean(log)

    assert records_of(log) == [(0, b"a", b"committed"), (4, b"b", b"new")]
    aborted = list(log.segments.first.txn_index)
    assert [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in aborted] == [(7, 2, 3)]


def test_a_marker_goes_when_its_data_is_gone_and_the_horizon_has_passed(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"aborted")], producer=(7, 0, 0), is_transactional=True)
    aborted_at = end_transaction(log, 7, is_commit=False)
    append(log, [(b"b", b"committed")], producer=(8, 0, 0), is_transactional=True)
    committed_at = end_transaction(log, 8, is_commit=True)
    # Other batches of both producers, so that none of the above is their last one.
    append(log, [(b"c", b"1")], producer=(7, 0, 1), is_transactional=True)
    end_transaction(log, 7, is_commit=True)
    append(log, [(b"d", b"1")], producer=(8, 0, 1), is_transactional=True)
    end_transaction(log, 8, is_commit=True)

    seen = []
    for round_number in range(4):
        append(log, [(b"x", b"%d" % round_number)])
        clean(log, NOW_MS + round_number * 1000)
        left = batches_of(log)
        seen.append([one.header.base_offset for one in left if one.header.is_control])

    # First the data goes; then the marker gets its horizon; then the horizon passes.
    assert aborted_at in seen[0]
    assert aborted_at in seen[1]
    assert aborted_at not in seen[2]
    assert committed_at in seen[3]
    assert all(not list(segment.txn_index) for segment in log.segments)


def test_open_transactions_hold_the_cleaner_back(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    roll(log)
    append(log, [(b"a", b"2")], producer=(7, 0, 0), is_transactional=True)
    append(log, [(b"a", b"3")])
    roll(log)

    outcome = manager_of(log).run(NOW_MS)

    assert outcome is not None
    assert outcome.statistics.end_offset == 1
    assert [offset for offset, *_ in records_of(log)] == [0, 1, 2]


# What must not be lost


def test_a_producers_last_sequence_survives_as_an_empty_batch(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1"), (b"b", b"1")], producer=(5, 2, 40))
    append(log, [(b"a", b"2"), (b"b", b"2")])
    clean(log)

    emptied = batches_of(log)[0]
    assert emptied.records == []
    assert (emptied.header.producer_id, emptied.header.last_sequence) == (5, 41)

    for snapshot in (tmp_path / "orders-0").glob("*.snapshot"):
        snapshot.unlink()
    reopened = open_log(tmp_path / "orders-0", log.config, checkpoints=after_crash(0, log.high_watermark))
    entry = reopened.producers.entries[5]
    assert (entry.producer_epoch, entry.last_sequence, entry.last_offset) == (2, 41, 1)


def test_the_end_of_a_segment_survives_as_an_empty_batch(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    append(log, [(b"a", b"2")])
    roll(log)
    append(log, [(b"a", b"3")])

    clean(log)

    left = batches_of(log)
    assert [(one.header.base_offset, one.header.record_count) for one in left] == [(2, 1)]
    assert log.segments.first.base_offset == 0

    append(log, [(b"b", b"1")])
    append(log, [(b"a", b"4")])
    log.truncate_to(4, now_ms=NOW_MS)
    assert log.log_end_offset == 4


def test_records_without_key_are_dropped_and_counted(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    log.append_as_follower(
        bytes(a_batch(2, key=None, base_offset=0, leader_epoch=0))
        + bytes(a_batch(base_offset=2, leader_epoch=0)),
        now_ms=NOW_MS,
    )
    log.update_high_watermark(3)

    outcome = clean(log)

    assert records_of(log) == [(2, b"key", b"value")]
    assert outcome.statistics.records_without_key == 2


def test_the_active_segment_is_never_touched(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    roll(log)
    append(log, [(b"a", b"2"), (b"a", b"3")])

    outcome = manager_of(log).run(NOW_MS)

    assert outcome is not None
    assert [offset for offset, *_ in records_of(log)] == [0, 1, 2]


def test_cleaned_segments_grow_together_up_to_the_segment_size(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, internal_segment_bytes=1500)
    for number in range(300):
        append(log, [(b"%d" % (number % 5), b"x" * 50)])
    many = len(log.segments)

    clean(log)
    append(log, [(b"other", b"")])
    clean(log)

    assert many > 20
    assert len(log.segments) <= 4
    assert all(segment.size <= 1500 for segment in log.segments)
    assert sorted(log.snapshots.offsets) == [s.base_offset for s in log.segments if s.base_offset > 0]


def test_a_map_too_small_for_all_keys_cleans_a_part_and_continues_later(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, internal_segment_bytes=100_000)
    for number in range(40):
        append(log, [(b"%d" % key, b"%d" % number) for key in range(number, number + 10)])
    roll(log)
    manager = manager_of(log)
    manager._workspaces[0].offset_map.capacity = 20  # 18 keys at a load factor of 0.9

    ends = []
    while (outcome := manager.run(NOW_MS)) is not None:
        assert outcome.problem is None
        ends.append(outcome.statistics.end_offset)

    assert ends == sorted(set(ends))
    assert len(ends) > 3
    assert ends[-1] == 400
    last = {b"%d" % key: (b"%d" % min(key, 39)) for key in range(49)}
    assert {key: value for _, key, value in records_of(log)} == last
    assert len(records_of(log)) == 49


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
def test_a_tombstone_behind_a_full_map_gets_no_horizon_yet(tmp_path: Path, codec: Codec) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"%d" % key, b"1") for key in range(30)])
    append(log, [(b"0", None)], codec=codec)
    roll(log)
    manager = manager_of(log)
    manager._workspaces[0].offset_map.capacity = 20

    manager.run(NOW_MS)

    left = batches_of(log)
    assert left[-1].records[0].value is None
    assert not left[-1].header.has_delete_horizon


def test_a_segment_whose_end_was_compacted_away_is_done_with(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    for base_offset in (0, 5):
        batch = a_batch(key=b"%d" % base_offset, base_offset=base_offset, leader_epoch=0)
        log.append_as_follower(batch, now_ms=NOW_MS)
    roll(log)
    log.append_as_follower(a_batch(base_offset=20, leader_epoch=0), now_ms=NOW_MS)
    log.update_high_watermark(21)
    roll(log)
    log.segments.remove([log.segments.active])
    log.segments.add(Segment.create(log.directory, 30, index_interval_bytes=200, now_ms=NOW_MS))
    log.log_end_offset = 30
    log.update_high_watermark(30)

    outcome = manager_of(log).run(NOW_MS)

    assert outcome is not None
    assert outcome.statistics.end_offset == 30


def test_large_batches_pass_a_small_buffer(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, internal_segment_bytes=1 << 20)
    append(log, [(b"a", b"x" * 100_000), (b"b", b"y")])
    append(log, [(b"a", b"z" * 50_000)], codec=Codec.LZ4)
    roll(log)

    outcome = manager_of(log, config=CleanerConfig(log_cleaner_io_buffer_size=0)).run(NOW_MS)

    assert outcome is not None
    assert records_of(log) == [(1, b"b", b"y"), (2, b"a", b"z" * 50_000)]


def test_a_cleaned_segment_looks_as_old_as_what_it_replaces(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    append(log, [(b"a", b"1")])
    roll(log)
    os.utime(log.segments.first.log.path, (1000, 1000))

    clean(log)

    assert os.stat(log.segments.first.log.path).st_mtime == 1000


def test_compact_and_delete_does_both(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, cleanup_policy=("compact", "delete"), retention_ms=10_000)
    append(log, [(b"a", b"1"), (b"b", b"1")], now_ms=NOW_MS)
    append(log, [(b"a", b"2")], now_ms=NOW_MS)
    roll(log)
    append(log, [(b"c", b"1")], now_ms=NOW_MS + 20_000)
    clean(log, NOW_MS)
    assert records_of(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1")]

    log.config = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=10_000)
    deletion = log.enforce_retention(NOW_MS + 25_000)

    assert deletion is not None or log.log_start_offset == 0


def reopened(log: PartitionLog) -> PartitionLog:
    log.close(NOW_MS)
    return open_log(log.directory.path, log.config, checkpoints=after_clean_stop(log))


def test_a_cleaned_log_is_the_same_after_a_restart(tmp_path: Path) -> None:
    log = compacted_log(tmp_path)
    for number in range(100):
        append(log, [(b"%d" % (number % 9), b"x" * 40)], producer=(3, 0, number))
    clean(log)
    before = records_of(log)

    again = reopened(log)

    assert records_of(again) == before
    assert again.log_end_offset == log.log_end_offset
    assert again.producers.entries[3].last_sequence == 99
