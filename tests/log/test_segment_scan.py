"""What a scan makes of fields that no CRC covers, and of the index entries that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_logs import SMALL, a_batch, fill, open_log
from odradek.log.batch_chunks import batch_chunks
from odradek.log.partition_log import PartitionLog
from odradek.log.segment import Segment
from odradek.log.segment_scan import IndexBuilder, SegmentScan, scan_segment
from odradek.log.time_index import TimestampOffset


def a_log(path: Path) -> PartitionLog:
    log = open_log(path, SMALL.replace(internal_segment_bytes=None))
    fill(log, 10, leader_epoch=3)
    fill(log, 10, leader_epoch=7)
    return log


def flipped(segment: Segment, position: int, mask: int) -> None:
    path = Path(segment.log.path)
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 18, 19])
@pytest.mark.parametrize("bit", [0, 1, 2, 3, 8, 31, 62, 63])
def test_a_flip_in_a_base_offset_ends_the_log_before_that_batch(
    tmp_path: Path, number: int, bit: int
) -> None:
    log = a_log(tmp_path)
    segment = log.segments.active
    span = list(segment.walk())[number]
    flipped(segment, span.position + 7 - bit // 8, 1 << bit % 8)
    scan = scan_segment(segment, allows_gaps=False, epochs=log.epochs)
    assert scan.problem is not None
    assert (scan.valid_size, scan.next_offset) == (span.position, span.base_offset)


@pytest.mark.parametrize("number", [1, 9, 10, 11, 18])
@pytest.mark.parametrize("bit", [2, 3, 8, 30, 31])
def test_a_flip_in_a_leader_epoch_is_put_on_the_right_batch(tmp_path: Path, number: int, bit: int) -> None:
    log = a_log(tmp_path)
    segment = log.segments.active
    span = list(segment.walk())[number]
    flipped(segment, span.position + 15 - bit // 8, 1 << bit % 8)
    scan = scan_segment(segment, allows_gaps=False, epochs=log.epochs)
    if scan.problem is None:
        # 3 and 7 swapped just where 7 begins: nothing contradicts it, and no record differs.
        assert (number, bit) in {(9, 2), (10, 2)}
        return
    assert (scan.valid_size, scan.next_offset) == (span.position, span.base_offset)


def test_gaps_that_compaction_left_are_no_damage(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for offset in (0, 5, 6, 40):
        log.append_as_follower(a_batch(base_offset=offset), now_ms=0)
    scan = scan_segment(log.segments.active, allows_gaps=True)
    assert (scan.problem, scan.next_offset, scan.shows_compaction) == (None, 41, True)
    scan = scan_segment(log.segments.active, allows_gaps=False)
    assert scan.problem is not None
    assert scan.next_offset == 7  # the gap before the last batch: nothing confirms it


@pytest.mark.parametrize("chunk_bytes", [62, 200, 1000, 10**6])
def test_chunks_of_any_size_hold_every_batch_once(tmp_path: Path, chunk_bytes: int) -> None:
    log = a_log(tmp_path)
    segment = log.segments.active
    expected = [span.position for span in segment.walk()]
    found = [
        chunk.start + chunk.position(index)
        for chunk in batch_chunks(segment.log, 0, chunk_bytes)
        for index in range(chunk.scan.count)
    ]
    assert found == expected


def test_a_scan_in_small_chunks_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log(tmp_path)
    whole = scan_segment(log.segments.active, epochs=log.epochs)
    monkeypatch.setattr("odradek.log.segment_scan.CHUNK_BYTES", 300)
    assert scan_segment(log.segments.active, epochs=log.epochs) == whole
    assert whole.offsets == list(log.segments.active.offset_index)
    assert whole.timestamps == list(log.segments.active.time_index)


class EntryByEntry(IndexBuilder):
    """The general way alone."""

    __slots__ = ()

    def _each_gets_an_entry(self, *_: object) -> bool:
        return False


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.tuples(st.sampled_from([10, 300, 900]), st.integers(-2, 3)), min_size=1, max_size=30),
    chunk_bytes=st.sampled_from([2_000, 5_000, 1 << 20]),
)
def test_the_short_way_through_large_batches_finds_the_same_entries(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, int]], chunk_bytes: int
) -> None:
    log = open_log(tmp_path_factory.mktemp("log"), SMALL.replace(internal_segment_bytes=None))
    now_ms = 1_000
    for size, step_ms in batches:
        now_ms += step_ms
        log.append_as_leader(a_batch(1, value=bytes(size), timestamp_ms=now_ms), 0, now_ms=now_ms)
    found = []
    for kind in (IndexBuilder, EntryByEntry):
        scan = SegmentScan(0, TimestampOffset(-1, 0))
        builder = kind(200, scan)
        for chunk in batch_chunks(log.segments.active.log, 0, chunk_bytes):
            builder.take(chunk, chunk.scan.count)
        found.append((scan.offsets, scan.timestamps, scan.greatest, scan.next_offset, scan.valid_size))
    log.release()
    assert found[0] == found[1]
