"""The walk over batch headers: where each batch of some bytes lies, and what its header says.

batch.py has the byte table of a header, layout.py the columns of a row. Compiled by Cython, or interpreted as
is; nothing outside the given bounds is read, whatever the bytes are.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import BATCH_ROW_WIDTH, HEADER_SIZE, BatchScan, Stop

if cython.compiled:
    from cython.cimports.odradek.records.kernels.record_check import check_bounds, wrapping_sum
else:
    from odradek.records.kernels.record_check import check_bounds, wrapping_sum
from odradek.records.kernels.record_check import new_bytearray

# C integers by batch_scan.pxd; layout.py decides the numbers.
_AT_END = Stop.AT_END
_TABLE_FULL = Stop.TABLE_FULL
_TRUNCATED = Stop.TRUNCATED
_BAD_LENGTH = Stop.BAD_LENGTH
_BAD_MAGIC = Stop.BAD_MAGIC
_HEADER_SIZE = HEADER_SIZE
_MASK = 0xFFFFFFFF
_STOPS = tuple(Stop)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _big_endian(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, size: cython.int
) -> cython.longlong:
    """The signed integer of `size` bytes at `position`."""
    number: cython.longlong = buffer[position]
    i: cython.int
    if number > 127:
        number -= 256
    for i in range(1, size):
        number = number * 256 + buffer[position + i]
    return number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _scan_header(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    table: cython.longlong[::1],
    at: cython.Py_ssize_t,
) -> cython.void:
    """Copy the header at `position` into a row, in the order of BatchColumn."""
    table[at] = position
    table[at + 1] = _big_endian(buffer, position, 8)
    table[at + 2] = _big_endian(buffer, position + 8, 4) + 12
    table[at + 3] = _big_endian(buffer, position + 12, 4)
    table[at + 4] = _big_endian(buffer, position + 17, 4) & _MASK
    table[at + 5] = _big_endian(buffer, position + 21, 2)
    table[at + 6] = wrapping_sum(table[at + 1], _big_endian(buffer, position + 23, 4))
    table[at + 7] = _big_endian(buffer, position + 27, 8)
    table[at + 8] = _big_endian(buffer, position + 35, 8)
    table[at + 9] = _big_endian(buffer, position + 43, 8)
    table[at + 10] = _big_endian(buffer, position + 51, 2)
    table[at + 11] = _big_endian(buffer, position + 53, 4)
    table[at + 12] = _big_endian(buffer, position + 57, 4)


def scan_batches(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    max_batches: cython.Py_ssize_t = 8192,
):
    """Walk the batch headers of `buffer[start:end]`, whole batches only, CRC not looked at; a BatchScan.

    It stops at the end, when `max_batches` are found, or before the first batch that is cut off or no batch;
    `position` is where the walk would go on.
    """
    check_bounds(len(buffer), start, end)
    capacity: cython.Py_ssize_t = min(max_batches, (end - start) // _HEADER_SIZE)
    rows = memoryview(new_bytearray(max(1, capacity * BATCH_ROW_WIDTH) * 8)).cast("q")
    table: cython.longlong[::1] = rows
    width: cython.Py_ssize_t = BATCH_ROW_WIDTH
    position: cython.Py_ssize_t = start
    size: cython.longlong
    count: cython.Py_ssize_t = 0
    stop: cython.int = _AT_END
    with cython.nogil:
        while position < end:
            if end - position > 16 and buffer[position + 16] != 2:
                stop = _BAD_MAGIC
                break
            if end - position < _HEADER_SIZE:
                stop = _TRUNCATED
                break
            size = _big_endian(buffer, position + 8, 4) + 12
            if size < _HEADER_SIZE:
                stop = _BAD_LENGTH
                break
            if size > end - position:
                stop = _TRUNCATED
                break
            if count == max_batches:
                stop = _TABLE_FULL
                break
            _scan_header(buffer, position, table, count * width)
            position += size
            count += 1
    return BatchScan(rows, count, _STOPS[stop], position)
