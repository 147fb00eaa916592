"""What a scan makes of fields that no CRC covers, and of the index entries that it finds."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import accumulate
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_logs import SMALL, a_batch, fill, open_log
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.recovery import scan_kernels as compiled_kernels
from odradek.log.recovery import segment_scan
from odradek.log.recovery.segment_scan import IndexBuilder, SegmentScan, scan_segment
from odradek.log.segment.batch_chunks import batch_chunks
from odradek.log.segment.segment import Segment
from odradek.log.segment.time_index import TimestampOffset


def interpreted_kernels() -> ModuleType:
    path = str(Path(segment_scan.__file__).with_name("scan_kernels.py"))
    loader = SourceFileLoader("interpreted_scan_kernels", path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


TWINS = {"compiled": compiled_kernels, "interpreted": interpreted_kernels()}


@pytest.fixture(params=TWINS)
def scan_kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The kernels that a scan uses in this test."""
    kernels = TWINS[request.param]
    monkeypatch.setattr(segment_scan, "count_plain", kernels.count_plain)
    monkeypatch.setattr(segment_scan, "index_batches", kernels.index_batches)
    return kernels


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


@pytest.mark.usefixtures("scan_kernels")
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


@pytest.mark.usefixtures("scan_kernels")
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


@pytest.mark.usefixtures("scan_kernels")
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


@pytest.mark.usefixtures("scan_kernels")
def test_a_scan_in_small_chunks_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log(tmp_path)
    whole = scan_segment(log.segments.active, epochs=log.epochs)
    monkeypatch.setattr("odradek.log.recovery.segment_scan.CHUNK_BYTES", 300)
    assert scan_segment(log.segments.active, epochs=log.epochs) == whole
    assert (whole.offset_entries, whole.time_entries) == index_files(log.segments.active)


def index_files(segment: Segment) -> tuple[bytes, bytes]:
    """What both index files hold once nothing is pending."""
    segment.write_pending()
    paths = segment.offset_index.file.path, segment.time_index.file.path
    return Path(paths[0]).read_bytes(), Path(paths[1]).read_bytes()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.tuples(st.sampled_from([10, 300, 900]), st.integers(-2, 3)), min_size=1, max_size=30),
    chunk_bytes=st.sampled_from([2_000, 5_000, 1 << 20]),
)
def test_a_scan_finds_the_entries_that_appending_has_made(
    tmp_path_factory: pytest.TempPathFactory,
    scan_kernels: ModuleType,
    batches: list[tuple[int, int]],
    chunk_bytes: int,
) -> None:
    log = open_log(tmp_path_factory.mktemp("log"), SMALL.replace(internal_segment_bytes=None))
    segment, now_ms = log.segments.active, 1_000
    for size, step_ms in batches:
        now_ms += step_ms
        log.append_as_leader(a_batch(1, value=bytes(size), timestamp_ms=now_ms), 0, now_ms=now_ms)
    expected = index_files(segment)
    scan = SegmentScan(0, TimestampOffset(-1, 0))
    builder = IndexBuilder(segment.index_interval_bytes, scan)
    for chunk in batch_chunks(segment.log, 0, chunk_bytes):
        builder.add_batches(chunk, chunk.scan.count)
    log.release()
    assert (scan.offset_entries, scan.time_entries) == expected
    assert (scan.next_offset, scan.valid_size) == (len(batches), segment.size)
    assert scan.greatest.timestamp_ms == max(
        list(accumulate((step for _, step in batches), initial=1_000))[1:]
    )
