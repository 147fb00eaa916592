from __future__ import annotations

import errno
from pathlib import Path

import pytest

from log.given_logs import (
    NOW_MS,
    SMALL,
    a_batch,
    a_marker,
    after_crash,
    fill,
    log_bytes,
    offsets_and_values,
    open_log,
    read_all,
)
from odradek.common.error_codes import ErrorCode
from odradek.log.config import LogConfig
from odradek.log.errors import (
    OutOfOrderSequence,
    RecordListTooLarge,
    StorageError,
    UnexpectedAppendOffset,
)
from odradek.log.leader_epochs import EpochEntry
from odradek.log.partition.leader_batches import Origin
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.partition.reading import Isolation
from odradek.log.partition.timestamps import TimestampedOffset
from odradek.log.segment.roll import RollReason
from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.batch import TimestampType, has_valid_crc, iterate_headers, read_header
from odradek.records.compression import Codec
from odradek.records.errors import CorruptBatch, InvalidRecord
from odradek.records.record import read_records
from odradek.testing.faulty_files import FaultyFiles

# Appending as leader


def test_a_leader_gives_the_next_offsets_and_its_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = log.append_as_leader(a_batch(3), 5, now_ms=NOW_MS)
    second = log.append_as_leader(a_batch(2), 5, now_ms=NOW_MS)
    assert (first.base_offset, first.last_offset) == (0, 2)
    assert (second.base_offset, second.last_offset) == (3, 4)
    assert log.log_end_offset == 5
    headers = [header for _, header in iterate_headers(log_bytes(tmp_path)["0" * 20 + ".log"])]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 5), (3, 5)]
    assert [record.offset for record in read_all(log)] == [0, 1, 2, 3, 4]


def test_a_writable_buffer_is_stamped_in_place_and_a_bytes_object_is_left_alone(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1)
    batch = a_batch()
    frozen = bytes(batch)
    log.append_as_leader(memoryview(batch), 1, now_ms=NOW_MS)
    log.append_as_leader(frozen, 1, now_ms=NOW_MS)
    assert read_header(batch).base_offset == 2
    assert read_header(frozen).base_offset == 0


def test_log_append_time_replaces_the_producers_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_type="LogAppendTime"))
    info = log.append_as_leader(a_batch(2, timestamp_ms=1), 0, now_ms=NOW_MS)
    assert info.log_append_time_ms == NOW_MS
    content = log_bytes(tmp_path)["0" * 20 + ".log"]
    header = read_header(content)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert has_valid_crc(content, 0, header)
    assert {record.timestamp_ms for record in read_all(log)} == {NOW_MS}
    assert log.offset_for_timestamp(NOW_MS) == TimestampedOffset(NOW_MS, 0, 0)


@pytest.mark.parametrize("timestamp_ms", [NOW_MS + 3_600_001, NOW_MS - 1001])
def test_a_time_too_far_from_the_clock_is_refused(tmp_path: Path, timestamp_ms: int) -> None:
    log = open_log(tmp_path, LogConfig(message_timestamp_before_max_ms=1000))
    with pytest.raises(InvalidRecord) as raised:
        log.append_as_leader(a_batch(timestamp_ms=timestamp_ms), 0, now_ms=NOW_MS)
    assert raised.value.error_code is ErrorCode.INVALID_TIMESTAMP
    assert log.log_end_offset == 0


def test_a_compacted_topic_needs_keys(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(cleanup_policy=("compact",)))
    with pytest.raises(InvalidRecord):
        log.append_as_leader(a_batch(key=None), 0, now_ms=NOW_MS)
    log.append_as_leader(a_batch(key=b"k"), 0, now_ms=NOW_MS)


def test_a_batch_above_max_message_bytes_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(max_message_bytes=200))
    with pytest.raises(Exception) as raised:  # noqa: PT011
        log.append_as_leader(a_batch(value=b"x" * 200), 0, now_ms=NOW_MS)
    assert raised.value.error_code is ErrorCode.MESSAGE_TOO_LARGE  # type: ignore[attr-defined]


def test_an_append_above_a_segments_size_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(internal_segment_bytes=300))
    with pytest.raises(RecordListTooLarge):
        log.append_as_leader(a_batch(value=b"x" * 400), 0, now_ms=NOW_MS)


def test_a_client_may_send_neither_two_batches_nor_control_records(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(InvalidRecord):
        log.append_as_leader(a_batch() + a_batch(), 0, now_ms=NOW_MS)
    with pytest.raises(InvalidRecord):
        log.append_as_leader(a_marker(1, is_commit=True), 0, now_ms=NOW_MS)
    assert log.log_end_offset == 0


def test_a_corrupt_batch_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = a_batch()
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch):
        log.append_as_leader(batch, 0, now_ms=NOW_MS)


@pytest.mark.parametrize("codec", list(Codec))
def test_batches_are_stored_as_they_came(tmp_path: Path, codec: Codec) -> None:
    log = open_log(tmp_path)
    batch = a_batch(10, codec=codec, value=b"x" * 50)
    log.append_as_leader(bytes(batch), 0, now_ms=NOW_MS)
    stored = log_bytes(tmp_path)["0" * 20 + ".log"]
    assert stored[16:] == batch[16:]  # all but offset and epoch


@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_changes_the_codec_and_nothing_else(tmp_path: Path, target: str) -> None:
    log = open_log(tmp_path, LogConfig(compression_type=target))
    sent = a_batch(10, codec=Codec.LZ4, value=b"x" * 50, producer_id=4, producer_epoch=1, base_sequence=0)
    log.append_as_leader(sent, 0, now_ms=NOW_MS)
    stored = log_bytes(tmp_path)["0" * 20 + ".log"]
    header = read_header(stored)
    assert header.codec.name.lower() == target.replace("uncompressed", "none")
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4, 1, 0)
    assert read_records(stored, max_bytes=10**6) == read_records(sent, max_bytes=10**6)


# Producers


def test_a_duplicate_is_acknowledged_with_its_old_offsets_and_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1, records=4)

    def send(sequence: int) -> tuple[int, bool]:
        batch = a_batch(2, producer_id=9, producer_epoch=0, base_sequence=sequence)
        info = log.append_as_leader(batch, 0, now_ms=NOW_MS)
        return info.base_offset, info.is_duplicate

    assert send(0) == (4, False)
    assert send(2) == (6, False)
    size = log.size_in_bytes
    assert send(0) == (4, True)
    assert log.size_in_bytes == size
    with pytest.raises(OutOfOrderSequence):
        send(6)
    assert send(4) == (8, False)


# Appending as follower


def test_a_follower_stores_exactly_what_the_leader_has(tmp_path: Path) -> None:
    leader = open_log(tmp_path / "leader")
    fill(leader, 20)
    fill(leader, 20, leader_epoch=3)
    follower = open_log(tmp_path / "follower")
    while follower.log_end_offset < leader.log_end_offset:
        part = leader.read(follower.log_end_offset, 1500, isolation=Isolation.LOG_END).range
        assert part is not None
        follower.append_as_follower(part.read(), now_ms=NOW_MS)
    assert log_bytes(tmp_path / "follower") == log_bytes(tmp_path / "leader")
    assert list(follower.epochs) == list(leader.epochs) == [EpochEntry(0, 0), EpochEntry(3, 40)]


def test_a_follower_takes_whole_batches_and_leaves_a_torn_rest(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    sent = a_batch(2) + a_batch(3, base_offset=2)
    log.append_as_follower(sent[:-5], now_ms=NOW_MS)
    assert log.log_end_offset == 2
    assert log.append_as_follower(b"", now_ms=NOW_MS) is None
    assert log.append_as_follower(a_batch(3, base_offset=2)[:40], now_ms=NOW_MS) is None


def test_a_follower_refuses_offsets_that_go_back_and_takes_gaps(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(a_batch(2, base_offset=10), now_ms=NOW_MS)
    assert log.log_end_offset == 12
    with pytest.raises(UnexpectedAppendOffset):
        log.append_as_follower(a_batch(base_offset=11), now_ms=NOW_MS)
    with pytest.raises(UnexpectedAppendOffset):
        log.append_as_follower(a_batch(2, base_offset=12) + a_batch(base_offset=13), now_ms=NOW_MS)
    assert log.log_end_offset == 12


def test_a_follower_refuses_a_corrupt_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = a_batch()
    batch[70] ^= 1
    with pytest.raises(CorruptBatch):
        log.append_as_follower(batch, now_ms=NOW_MS)
    with pytest.raises(CorruptBatch):
        log.append_as_follower(b"\1" * 100, now_ms=NOW_MS)


# Leader epochs


def test_the_epoch_file_is_synced_before_the_first_append_of_an_epoch(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, 1, leader_epoch=0)
    before = log_bytes(tmp_path)
    files.fault = lambda call, path: errno.EIO if call == "sync" and "leader-epoch" in path else 0
    with pytest.raises(StorageError):
        log.append_as_leader(a_batch(), 1, now_ms=NOW_MS)
    assert log_bytes(tmp_path) == before
    assert (log.log_end_offset, log.epochs.latest) == (2, 0)
    files.fault = lambda call, path: 0
    files.synced.clear()
    log.append_as_leader(a_batch(), 1, now_ms=NOW_MS)
    assert files.synced == [f"{tmp_path}/leader-epoch-checkpoint.tmp", str(tmp_path)]
    assert (tmp_path / "leader-epoch-checkpoint").read_bytes() == b"0\n2\n0 0\n1 2\n"


# Rolling


def test_segments_roll_by_size_and_keep_every_record(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 200)
    assert len(log.segments) > 5
    assert all(segment.size <= 4096 for segment in log.segments)
    assert [record.offset for record in read_all(log)] == list(range(400))


def test_segments_roll_by_the_records_own_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=5000))
    reasons = [
        log.append_as_leader(a_batch(timestamp_ms=NOW_MS + ms), 0, now_ms=NOW_MS).roll_reason
        for ms in (0, 5000, 5001, 10_001, 10_002)
    ]
    assert reasons == [None, None, RollReason.TIME, None, RollReason.TIME]


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    reasons = [log.append_as_leader(a_batch(), 0, now_ms=NOW_MS).roll_reason for _ in range(12)]
    assert RollReason.INDEX_FULL in reasons
    assert all(len(segment.offset_index) <= 36 // 8 for segment in log.segments)


def test_segments_roll_before_a_relative_offset_overflows(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 1)
    far = a_batch(base_offset=2**31 + 5)
    info = log.append_as_follower(far, now_ms=NOW_MS)
    assert info is not None
    assert info.roll_reason is RollReason.OFFSET_OVERFLOW
    assert log.segments.active.base_offset == 2**31 + 5


# A disk that refuses


def test_a_full_disk_refuses_the_append_and_nothing_else(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, 30)
    log.update_high_watermark(60)
    before, expected = log_bytes(tmp_path), offsets_and_values(log)
    for free in (0, 1, 50, 300):
        files.free_bytes = free
        with pytest.raises(StorageError) as raised:
            fill(log, 100)
        assert raised.value.is_no_space
        assert raised.value.error_code.is_retriable
        assert offsets_and_values(log)[:60] == expected
    files.free_bytes = None
    end = log.log_end_offset
    fill(log, 30)
    assert log.log_end_offset == end + 60
    assert [record.offset for record in read_all(log)] == list(range(end + 60))
    assert set(before) <= set(log_bytes(tmp_path))
    log.close(NOW_MS)
    again = open_log(tmp_path, checkpoints=after_crash(high_watermark=end + 60))
    assert again.log_end_offset == end + 60


@pytest.mark.parametrize("part", [".log", ".index", ".timeindex", ".snapshot"])
def test_a_full_disk_at_a_roll_leaves_no_half_segment(tmp_path: Path, part: str) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, 5)
    before = sorted(file.name for file in tmp_path.iterdir())
    files.fault = lambda call, path: errno.ENOSPC if call == "open" and path.endswith(part) else 0
    with pytest.raises(StorageError):
        log.roll(NOW_MS)
    assert sorted(file.name for file in tmp_path.iterdir() if file.suffix != ".snapshot") == before
    fill(log, 5)
    files.fault = lambda call, path: 0
    log.roll(NOW_MS)
    fill(log, 5)
    log.release()
    again = open_log(tmp_path, checkpoints=after_crash(high_watermark=30))
    assert [record.offset for record in read_all(again)] == list(range(30))


def test_a_preallocated_segment_is_trimmed_when_it_is_closed_or_recovered(tmp_path: Path) -> None:
    config = SMALL.replace(preallocate=True)
    log = open_log(tmp_path, config)
    fill(log, 60)
    sizes = [Path(segment.log.path).stat().st_size for segment in log.segments]
    assert sizes[:-1] == [segment.size for segment in log.segments][:-1]
    assert sizes[-1] == 4096 > log.segments.active.size
    again = open_log(tmp_path, config, checkpoints=after_crash(high_watermark=120))
    assert again.log_end_offset == 120
    assert Path(again.segments.active.log.path).stat().st_size == again.segments.active.size


def test_a_full_disk_at_the_abort_marker_leaves_the_transaction_open(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, LogConfig(), files=files)
    batch = a_batch(2, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.append_as_leader(batch, 0, now_ms=NOW_MS)
    log.update_high_watermark(2)
    files.fault = lambda call, path: errno.ENOSPC if call == "write_at" and "txnindex" in path else 0
    before = log_bytes(tmp_path)
    with pytest.raises(StorageError):
        abort(log)
    assert log_bytes(tmp_path) == before
    assert (log.log_end_offset, log.last_stable_offset) == (2, 0)
    files.fault = lambda call, path: 0
    abort(log)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3
    assert log.read(0, 10**6, isolation=Isolation.COMMITTED).aborted == (AbortedTxn(1, 0, 2, 3),)


def abort(log: PartitionLog) -> None:
    marker = a_marker(1, is_commit=False)
    log.append_as_leader(marker, 0, now_ms=NOW_MS, origin=Origin.COORDINATOR)


def test_a_dying_disk_is_no_full_disk(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    fill(log, 3)
    files.fault = lambda call, path: errno.EIO if call == "write_at" else 0
    with pytest.raises(StorageError) as raised:
        fill(log, 1)
    assert not raised.value.is_no_space
    assert raised.value.errno == errno.EIO
