"""Finding batches in a segment: by the index, by the headers, and without a damaged index."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.given_logs import NOW_MS, a_batch
from odradek.log.files.file_system import FileSystem
from odradek.log.files.log_file import HandleCache, PartitionDirectory
from odradek.log.segment.segment import Segment
from odradek.log.segment.segment_reader import BatchSpan
from odradek.records.batch import read_header
from odradek.records.errors import CorruptBatch, TruncatedBatch

BASE_OFFSET = 100
BATCH_COUNT = 20
RECORDS_PER_BATCH = 3


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Twenty batches of three records, and an index entry for every few of them."""
    directory = PartitionDirectory(str(tmp_path), HandleCache(FileSystem(), 16))
    made = Segment.create(directory, BASE_OFFSET, index_interval_bytes=500, now_ms=NOW_MS)
    for number in range(BATCH_COUNT):
        offset = BASE_OFFSET + number * RECORDS_PER_BATCH
        batch = a_batch(RECORDS_PER_BATCH, base_offset=offset, value=b"x" * (number * 7))
        made.append(batch, offset, read_header(batch).last_offset, NOW_MS)
    return made


def spans_of(segment: Segment) -> list[BatchSpan]:
    return list(segment.walk())


def test_a_walk_returns_adjacent_batches_from_the_start_to_the_end(segment: Segment) -> None:
    spans = spans_of(segment)

    assert [span.base_offset for span in spans] == list(range(100, 160, RECORDS_PER_BATCH))
    assert [span.last_offset for span in spans] == list(range(102, 162, RECORDS_PER_BATCH))
    assert [span.position for span in spans] == [0, *(span.end_position for span in spans[:-1])]
    assert spans[-1].end_position == segment.size


def test_a_walk_from_a_batch_returns_that_batch_and_the_later_ones(segment: Segment) -> None:
    positions = [span.position for span in spans_of(segment)]

    assert [span.position for span in segment.walk(positions[7])] == positions[7:]


def test_a_walk_to_the_middle_of_a_batch_reports_it_as_truncated(segment: Segment) -> None:
    third = spans_of(segment)[2]

    walk = segment.walk(0, third.end_position - 1)
    assert [next(walk).base_offset, next(walk).base_offset] == [100, 103]
    with pytest.raises(TruncatedBatch):
        next(walk)


def test_a_position_inside_of_a_batch_is_no_batch(segment: Segment) -> None:
    with pytest.raises(CorruptBatch):
        segment.span_at(spans_of(segment)[1].position + 1)


def test_the_next_offset_follows_the_last_batch(segment: Segment) -> None:
    assert segment.next_offset() == BASE_OFFSET + BATCH_COUNT * RECORDS_PER_BATCH


def test_a_boundary_is_the_last_place_before_the_target_where_a_batch_begins_or_ends(
    segment: Segment,
) -> None:
    spans = spans_of(segment)

    for target in range(0, segment.size + 50, 11):
        boundary = segment.floor_boundary(0, target)
        containing = [span for span in spans if span.position <= target < span.end_position]
        expected = (containing[0].position, containing[0].base_offset) if containing else (segment.size, -1)
        assert (boundary.position, boundary.base_offset) == expected


def test_a_damaged_index_is_not_used(segment: Segment, tmp_path: Path) -> None:
    positions = {span.base_offset: span.position for span in spans_of(segment)}
    segment.seal()
    segment.close()
    index = tmp_path / f"{BASE_OFFSET:020}.index"
    content = bytearray(index.read_bytes())
    assert len(content) >= 16
    for entry in range(0, len(content), 8):
        content[entry + 7] ^= 1  # the lowest byte of the position
    index.write_bytes(content)

    directory = PartitionDirectory(str(tmp_path), HandleCache(FileSystem(), 16))
    sizes = {path.suffix: path.stat().st_size for path in tmp_path.iterdir()}
    reopened = Segment(directory, BASE_OFFSET, index_interval_bytes=500, created_ms=NOW_MS, sizes=sizes)
    entry = reopened.offset_index.lookup(BASE_OFFSET + 50)
    assert entry is not None
    assert entry.position not in positions.values()

    assert {offset: reopened.position_of(offset) for offset in positions} == positions
