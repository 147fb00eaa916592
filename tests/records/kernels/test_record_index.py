"""Tables of where records lie: of one batch, and of the run of plain batches in a scan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.records.batch import TimestampType
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, ROW_WIDTH, Column, Problem
from odradek.records.kernels.record_objects import Record
from records.conftest import COMPILED, INTERPRETED
from records.samples import a_batch, patched, record_lists, some_records


def a_log(*lists: list[Record], **settings: Any) -> bytearray:
    """Batches one after the other, each from offset 1000 times its place on."""
    return b"".join(  # type: ignore[return-value]
        build_batch(
            [replaced(record, 1000 * number) for record in records], base_offset=1000 * number, **settings
        )
        for number, records in enumerate(lists)
    )


def replaced(record: Record, base_offset: int) -> Record:
    return Record(base_offset + record.offset, record.timestamp_ms, record.key, record.value, record.headers)


def test_the_index_points_at_keys_values_and_headers(kernel):
    records, batch = some_records(20), a_batch(20)
    table = memoryview(bytearray(20 * ROW_WIDTH * 8)).cast("q")

    assert kernel.index_records(batch, 61, len(batch), 20, table) == (Problem.NONE, len(batch), 20)

    for i, expected in enumerate(records):
        row = table[i * ROW_WIDTH : (i + 1) * ROW_WIDTH]
        assert row[Column.OFFSET_DELTA] == expected.offset
        assert row[Column.TIMESTAMP_DELTA] == expected.timestamp_ms - records[0].timestamp_ms
        assert row[Column.HEADER_COUNT] == len(expected.headers)
        for position, length, content in (
            (Column.KEY_POSITION, Column.KEY_LENGTH, expected.key),
            (Column.VALUE_POSITION, Column.VALUE_LENGTH, expected.value),
        ):
            found = None if row[length] < 0 else bytes(batch[row[position] : row[position] + row[length]])
            assert found == content
    assert table[0] == 61


@given(lists=st.lists(record_lists(), min_size=1, max_size=5))
def test_a_run_has_the_whole_offsets_and_times_of_all_its_batches(lists):
    log = a_log(*lists)
    offsets = [1000 * number + record.offset for number, records in enumerate(lists) for record in records]
    for kernel in (COMPILED, INTERPRETED):
        batches = kernel.scan_batches(log, 0, len(log)).table
        end, rows = kernel.find_run(batches, 0, len(lists), 10_000)
        table = memoryview(bytearray(rows * ROW_WIDTH * 8)).cast("q")

        assert (end, rows) == (len(lists), len(offsets))
        assert kernel.index_run(log, batches, 0, end, table) == (end, rows)
        assert list(table[Column.OFFSET_DELTA :: ROW_WIDTH]) == offsets
        assert list(table[Column.TIMESTAMP_DELTA :: ROW_WIDTH]) == [
            record.timestamp_ms for records in lists for record in records
        ]
        assert [
            None if length < 0 else bytes(log[position : position + length])
            for position, length in zip(
                table[Column.VALUE_POSITION :: ROW_WIDTH],
                table[Column.VALUE_LENGTH :: ROW_WIDTH],
                strict=True,
            )
        ] == [record.value for records in lists for record in records]


def test_a_run_ends_before_what_is_not_plain_or_too_much_or_damaged(kernel):
    plain, other_epoch = a_log(some_records(3)), a_log(some_records(3), partition_leader_epoch=9)
    special = [
        a_log(some_records(3), codec=Codec.LZ4),
        a_log(some_records(3), timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=5),
        other_epoch,
        patched(plain, 57, ">i", 2**31 - 1),
        patched(plain, 57, ">i", -1),
    ]

    def run(log, max_rows=100):
        scan = kernel.scan_batches(log, 0, len(log))
        return kernel.find_run(scan.table, 0, scan.count, max_rows)

    assert [run(plain + one + plain) for one in special] == [(1, 3)] * len(special)
    assert run(special[0] + plain) == (0, 0)
    assert run(plain * 4, max_rows=6) == (2, 6)
    assert run(plain * 4, max_rows=1) == (1, 3)
    damaged = patched(plain, 57, ">i", 2)
    batches = kernel.scan_batches(plain + damaged + plain, 0, 3 * len(plain)).table
    table = memoryview(bytearray(9 * ROW_WIDTH * 8)).cast("q")
    assert kernel.index_run(plain + damaged + plain, batches, 0, 3, table) == (1, 3)
    assert kernel.index_run(plain * 3, batches, 0, 3, table[: 5 * ROW_WIDTH]) == (1, 3)
    assert kernel.index_run(plain * 2, batches, 0, 3, table) == (1, 3)
    with pytest.raises(IndexError):
        kernel.find_run(batches, 0, len(batches) // BATCH_ROW_WIDTH + 1, 100)
    with pytest.raises(IndexError):
        kernel.index_run(plain, batches, 2, 1, table)


def test_a_table_that_is_too_small_is_raised_not_overrun(kernel):
    batch = a_batch(2)
    table = memoryview(bytearray(8 * ROW_WIDTH)).cast("q")
    with pytest.raises(IndexError):
        kernel.index_records(batch, 61, len(batch), 2, table)
