"""Tables of where the records of a batch lie, or of a run of many; compiled by Cython, or interpreted as is.

record_check.py has the layout of a record and walks it; layout.py has the columns of a row. The Python code
per batch costs as much as a hundred records, hence runs: the plain batches of a scan, indexed in one call.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import (
    BATCH_ROW_WIDTH,
    HEADER_SIZE,
    ROW_WIDTH,
    SMALLEST_RECORD,
    BatchColumn,
    Column,
    Problem,
)

if cython.compiled:
    from cython.cimports.odradek.records.kernels.record_check import check_bounds, walk_record, wrapping_sum
else:
    from odradek.records.kernels.record_check import check_bounds, wrapping_sum
    from odradek.records.kernels.record_check import index_record as walk_record

# C integers by record_index.pxd; layout.py decides the numbers.
_BYTES_LEFT = Problem.BYTES_LEFT
_OFFSET_DELTA = Column.OFFSET_DELTA
_TIMESTAMP_DELTA = Column.TIMESTAMP_DELTA
_ROW_WIDTH = ROW_WIDTH
_SMALLEST_RECORD = SMALLEST_RECORD
_BATCH_WIDTH = BATCH_ROW_WIDTH
_BATCH_BASE_OFFSET = BatchColumn.BASE_OFFSET
_BATCH_SIZE = BatchColumn.SIZE_IN_BYTES
_BATCH_EPOCH = BatchColumn.PARTITION_LEADER_EPOCH
_BATCH_ATTRIBUTES = BatchColumn.ATTRIBUTES
_BATCH_BASE_TIMESTAMP = BatchColumn.BASE_TIMESTAMP_MS
_BATCH_RECORDS = BatchColumn.RECORD_COUNT
_HEADER_SIZE = HEADER_SIZE


def index_records(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    table: cython.longlong[::1],
):
    """Fill one row of `table` per record; answers (problem, position, record index)."""
    problem: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = start
    following: cython.Py_ssize_t
    index: cython.Py_ssize_t = 0
    check_bounds(len(buffer), start, end)
    check_bounds(len(table), 0, count * _ROW_WIDTH)
    if cython.compiled:
        raw, rows = cython.address(buffer[0]), cython.address(table[0])
    else:
        raw, rows = buffer, table
    with cython.nogil:
        while index < count:
            following = walk_record(raw, position, end, rows, index * _ROW_WIDTH)
            if following < 0:
                problem = -following
                position = table[index * _ROW_WIDTH]
                break
            position = following
            index += 1
    if problem == 0 and position != end:
        problem = _BYTES_LEFT
    return problem, position, index


def find_run(
    batches: cython.longlong[::1],
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    max_rows: cython.longlong,
):
    """(end, rows): where the plainest batches of a scan of `count` batches, from `first` on, end.

    Those have nothing in their attributes (no codec, no transaction, no append time), the same leader epoch,
    and at most `max_rows` records together, unless the first alone has more.
    """
    rows: cython.longlong = 0
    records: cython.longlong
    index: cython.Py_ssize_t = first
    at: cython.Py_ssize_t
    check_bounds(len(batches), first * _BATCH_WIDTH, count * _BATCH_WIDTH)
    while index < count:
        at = index * _BATCH_WIDTH
        records = batches[at + _BATCH_RECORDS]
        if (
            batches[at + _BATCH_ATTRIBUTES] != 0
            or batches[at + _BATCH_EPOCH] != batches[first * _BATCH_WIDTH + _BATCH_EPOCH]
            or records < 0
            or records > (batches[at + _BATCH_SIZE] - _HEADER_SIZE) // _SMALLEST_RECORD
            or (index > first and rows + records > max_rows)
        ):
            break
        rows += records
        index += 1
    return index, rows


def index_run(
    buffer: cython.const[cython.uchar][::1],
    batches: cython.longlong[::1],
    first: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    table: cython.longlong[::1],
):
    """Fill one row of `table` per record of the batches that `find_run` found.

    The columns of deltas get whole offsets and timestamps. Answers (end, rows): where the first batch with a
    fault is, and the rows before it.
    """
    rows: cython.Py_ssize_t = 0
    index: cython.Py_ssize_t = first
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    position: cython.Py_ssize_t
    limit: cython.Py_ssize_t
    count: cython.Py_ssize_t
    check_bounds(len(batches), first * _BATCH_WIDTH, end * _BATCH_WIDTH)
    if cython.compiled:
        raw, records = cython.address(buffer[0]), cython.address(table[0])
    else:
        raw, records = buffer, table
    with cython.nogil:
        while index < end:
            at = index * _BATCH_WIDTH
            position = batches[at] + _HEADER_SIZE
            limit = batches[at] + batches[at + _BATCH_SIZE]
            count = batches[at + _BATCH_RECORDS]
            if limit > len(buffer) or (rows + count) * _ROW_WIDTH > len(table):
                break
            for row in range(rows, rows + count):
                position = walk_record(raw, position, limit, records, row * _ROW_WIDTH)
                if position < 0:
                    break
                table[row * _ROW_WIDTH + _OFFSET_DELTA] = wrapping_sum(
                    batches[at + _BATCH_BASE_OFFSET], table[row * _ROW_WIDTH + _OFFSET_DELTA]
                )
                table[row * _ROW_WIDTH + _TIMESTAMP_DELTA] = wrapping_sum(
                    batches[at + _BATCH_BASE_TIMESTAMP], table[row * _ROW_WIDTH + _TIMESTAMP_DELTA]
                )
            if position != limit:
                break
            rows += count
            index += 1
    return index, rows
