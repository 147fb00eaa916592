"""Records to columns in one walk: every field once, nothing of a batch with a fault."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records.builder import build_batch
from odradek.records.kernels.batch_scan import scan_batches
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, HEADER_SIZE, BatchColumn
from odradek.records.kernels.record_index import find_run
from odradek.records.record import Record
from records.conftest import COMPILED, INTERPRETED, Kernels
from records.samples import record_lists, some_records

FROM_THE_START = -(2**63)


def numbers(memory: Any, code: str, count: int) -> list[int]:
    size = {"q": 8, "i": 4, "B": 1}[code] * count
    return memoryview(memory).cast("B")[:size].cast(code).tolist()


def entries(count: int, buffers: tuple[int, Any, Any, Any]) -> list[bytes | None]:
    """A column of bytes as a reader of Arrow sees it."""
    nulls, validity, offsets, content = buffers
    ends = numbers(offsets, "i", count + 1)
    found = [
        bytes(content[ends[i] : ends[i + 1]]) if validity[i >> 3] >> (i & 7) & 1 else None
        for i in range(count)
    ]
    assert found.count(None) == nulls
    return found


def rows(sink: Any) -> list[Record]:
    offsets, timestamps, types = sink.number_buffers
    keys, values = (entries(len(sink), buffers) for buffers in sink.bytes_buffers)
    headers, list_offsets, header_keys, header_values = sink.header_buffers
    pairs = list(zip(entries(headers, header_keys), entries(headers, header_values), strict=True))
    ends = numbers(list_offsets, "i", len(sink) + 1)
    assert set(numbers(types, "B", len(sink))) <= {0, 1}
    return [
        Record(
            offset,
            timestamp_ms,
            keys[i],
            values[i],
            tuple((key.decode(), value) for key, value in pairs[ends[i] : ends[i + 1]] if key is not None),
        )
        for i, (offset, timestamp_ms) in enumerate(
            zip(numbers(offsets, "q", len(sink)), numbers(timestamps, "q", len(sink)), strict=True)
        )
    ]


def take_all(sink: Any, log: bytes, from_offset: int = FROM_THE_START) -> int:
    """Take all batches of a log as one run; where the first fault is."""
    scan = scan_batches(log, 0, len(log))
    end, _ = find_run(scan.table, 0, scan.count, 2**31)
    stopped: int = sink.append_run(log, scan.table, 0, end, from_offset)
    return stopped


def log_of(lists: list[list[Record]]) -> tuple[bytes, list[Record]]:
    """Batches one after another, and the records as they lie there."""
    log, records, base = b"", [], 0
    for some in lists:
        moved = [Record(base + r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in some]
        log += build_batch(moved, base_offset=base)
        records += moved
        base = moved[-1].offset + 1
    return log, records


@given(lists=st.lists(record_lists(gaps=True), min_size=1, max_size=5), draws=st.data())
def test_a_run_of_batches_becomes_columns_from_any_offset_on(
    lists: list[list[Record]], draws: st.DataObject
) -> None:
    log, records = log_of(lists)
    from_offset = draws.draw(st.integers(0, records[-1].offset))
    expected = [record for record in records if record.offset >= from_offset]

    for kernel in (COMPILED, INTERPRETED):
        sink = kernel.RecordsSink()
        assert take_all(sink, log, from_offset) == len(lists)
        assert rows(sink) == expected


@given(
    lists=st.lists(record_lists(), min_size=1, max_size=4),
    flips=st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), max_size=3),
)
def test_both_twins_take_the_same_of_damaged_batches_and_nothing_of_the_first_at_fault(
    lists: list[list[Record]], flips: list[tuple[int, int]]
) -> None:
    whole, _ = log_of(lists)
    scan = scan_batches(whole, 0, len(whole))
    log = bytearray(whole)
    for place, flip in flips:
        batch = place % scan.count
        start = scan.field(batch, BatchColumn.POSITION) + HEADER_SIZE
        log[start + place % (scan.field(batch, BatchColumn.SIZE_IN_BYTES) - HEADER_SIZE)] ^= flip

    compiled, interpreted = COMPILED.RecordsSink(), INTERPRETED.RecordsSink()
    stopped = take_all(compiled, bytes(log))
    assert stopped == take_all(interpreted, bytes(log))

    assert len(compiled) == len(interpreted) == sum(len(some) for some in lists[:stopped])
    for code, one, other in zip("qqB", compiled.number_buffers, interpreted.number_buffers, strict=True):
        assert numbers(one, code, len(compiled)) == numbers(other, code, len(compiled))
    for one, other in zip(compiled.bytes_buffers, interpreted.bytes_buffers, strict=True):
        assert entries(len(compiled), one) == entries(len(interpreted), other)


def test_a_fault_leaves_no_trace_in_what_is_taken_after_it(kernel: Kernels) -> None:
    good, bad = build_batch(some_records(9)), bytearray(build_batch(some_records(30)))
    bad[-1] ^= 0x7F  # in the last record, after keys, nulls and headers
    sink = kernel.RecordsSink()

    take_all(sink, bytes(good))
    assert take_all(sink, bytes(bad)) == 0
    take_all(sink, bytes(good))

    assert rows(sink) == some_records(9) * 2


def test_a_single_batch_reports_its_fault_as_the_index_does(kernel: Kernels) -> None:
    batch = bytearray(build_batch(some_records(5)))
    sink = kernel.RecordsSink()
    arguments = (5, 0, 0, False, FROM_THE_START)

    assert sink.append_batch(batch, HEADER_SIZE, len(batch), *arguments) == (0, len(batch), 5)
    batch[HEADER_SIZE] = 2  # the first record's length
    table = memoryview(bytearray(5 * 9 * 8)).cast("q")
    expected = kernel.index_records(batch, HEADER_SIZE, len(batch), 5, table)
    assert sink.append_batch(batch, HEADER_SIZE, len(batch), *arguments) == expected
    assert expected[0] != 0
    assert len(sink) == 5


def test_append_time_is_that_of_every_record(kernel: Kernels) -> None:
    batch = build_batch(some_records(4))
    sink = kernel.RecordsSink()

    sink.append_batch(batch, HEADER_SIZE, len(batch), 4, 100, 5000, True, FROM_THE_START)

    offsets, timestamps, types = sink.number_buffers
    assert numbers(offsets, "q", 4) == [100, 101, 102, 103]
    assert numbers(timestamps, "q", 4) == [5000] * 4
    assert numbers(types, "B", 4) == [1] * 4


def test_a_callers_mistake_is_raised(kernel: Kernels) -> None:
    batch = build_batch(some_records(2))
    scan = scan_batches(batch, 0, len(batch))
    sink = kernel.RecordsSink()

    with pytest.raises(IndexError):
        sink.append_batch(batch, HEADER_SIZE, len(batch) + 1, 2, 0, 0, False, 0)
    with pytest.raises(IndexError):
        sink.append_batch(batch, HEADER_SIZE, len(batch), 1000, 0, 0, False, 0)
    with pytest.raises(IndexError):
        sink.append_run(batch, scan.table, 0, len(scan.table) // BATCH_ROW_WIDTH + 1, 0)
    assert sink.append_run(batch[:-1], scan.table, 0, 1, 0) == 0
    assert len(sink) == 0
