"""The loops of compaction over batches: copy those that do not change, rebuild the others.

Compiled by Cython, or interpreted as is, like kernels.py, which chooses the survivors.
The caller computes the CRC of a rebuilt batch.
"""

from __future__ import annotations

import cython

from odradek.log.cleaner.filter.layout import ROW_WIDTH, Counter, RecordKind, Row, Verdict
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, BatchColumn

if cython.compiled:
    from cython.cimports.libc.string import memcpy

IS_COMPILED = cython.compiled

# C integers by copy_kernels.pxd, so that the loops need no Python object.
_START = Row.START
_REST = Row.REST
_END = Row.END
_TIMESTAMP_DELTA = Row.TIMESTAMP_DELTA
_KIND = Row.KIND
_SURVIVES = Row.SURVIVES
_ROW_WIDTH = ROW_WIDTH
_TOMBSTONE = RecordKind.TOMBSTONE
_DISCARD = Verdict.DISCARD

_BATCH_WIDTH = BATCH_ROW_WIDTH
_BATCH_POSITION = BatchColumn.POSITION
_BATCH_SIZE = BatchColumn.SIZE_IN_BYTES
_BATCH_ATTRIBUTES = BatchColumn.ATTRIBUTES
_BATCH_LAST_OFFSET = BatchColumn.LAST_OFFSET
_BATCH_BASE_TIMESTAMP = BatchColumn.BASE_TIMESTAMP_MS
_BATCH_RECORD_COUNT = BatchColumn.RECORD_COUNT

_BATCHES_CHANGED = Counter.BATCHES_CHANGED
_RECORDS_READ = Counter.RECORDS_READ
_RECORDS_KEPT = Counter.RECORDS_KEPT


# Numbers.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(out: cython.uchar[::1], at: cython.Py_ssize_t, number: cython.longlong) -> cython.Py_ssize_t:
    """Write `number`; where the next byte goes."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (number << 1) ^ (number >> 63))
    while raw >= 0x80:
        out[at] = (raw & 0x7F) | 0x80
        at += 1
        raw >>= 7
    out[at] = raw
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(number: cython.longlong) -> cython.Py_ssize_t:
    """Bytes that `number` takes as a varint."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (number << 1) ^ (number >> 63))
    size: cython.Py_ssize_t = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_big_endian(
    out: cython.uchar[::1], at: cython.Py_ssize_t, number: cython.longlong, size: cython.int
) -> cython.void:
    """Write the low `size` bytes of `number`."""
    i: cython.int
    for i in range(size):
        out[at + i] = (number >> (8 * (size - 1 - i))) & 0xFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrapping_sum(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """A sum of 64 bits that wraps, as Java's does: both numbers come from outside."""
    if cython.compiled:
        total = cython.cast(
            cython.longlong, cython.cast(cython.ulonglong, base) + cython.cast(cython.ulonglong, delta)
        )
    else:
        total = (base + delta + 2**63) % 2**64 - 2**63
    return total


@cython.cfunc
def _check_bounds(size: cython.Py_ssize_t, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """IndexError for wrong arguments; faults in the bytes are returned."""
    if not 0 <= start <= end <= size:
        raise IndexError(f"{start}:{end} is not within {size}")


# Records.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy `buffer[start:end]`; where the next byte goes."""
    if cython.compiled:
        if end > start:
            memcpy(cython.address(out[at]), cython.address(buffer[start]), end - start)
    else:
        out[at : at + end - start] = buffer[start:end]
    return at + end - start


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_rows(
    buffer: cython.const[cython.uchar][::1],
    rows: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    timestamp_shift: cython.longlong,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Copy the survivors of rows [first, stop), their timestamp deltas shifted; where the next byte goes."""
    row: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    delta: cython.longlong
    for i in range(first, stop):
        row = i * _ROW_WIDTH
        if rows[row + _SURVIVES] == 0:
            continue
        if timestamp_shift != 0:
            delta = _wrapping_sum(rows[row + _TIMESTAMP_DELTA], timestamp_shift)
            at = _put_varint(out, at, 1 + _varint_size(delta) + rows[row + _END] - rows[row + _REST])
            out[at] = 0
            at = _put_varint(out, at + 1, delta)
            at = _copy(buffer, rows[row + _REST], rows[row + _END], out, at)
        elif rows[row + _START] == end:
            end = rows[row + _END]
        else:
            at = _copy(buffer, start, end, out, at)
            start = rows[row + _START]
            end = rows[row + _END]
    return _copy(buffer, start, end, out, at)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _has(numbers: cython.const[cython.longlong][::1], number: cython.longlong) -> cython.bint:
    """Whether a sorted array holds `number`."""
    low: cython.Py_ssize_t = 0
    high: cython.Py_ssize_t = numbers.shape[0]
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] == number:
            return True
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sum_up(
    rows: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    summary: cython.longlong[::1],
) -> cython.void:
    """Of the survivors in rows [first, stop): how many, is a tombstone among them, latest timestamp delta."""
    i: cython.Py_ssize_t
    row: cython.Py_ssize_t
    summary[0] = summary[1] = summary[2] = 0
    for i in range(first, stop):
        row = i * _ROW_WIDTH
        if rows[row + _SURVIVES] == 0:
            continue
        if summary[0] == 0 or rows[row + _TIMESTAMP_DELTA] > summary[2]:
            summary[2] = rows[row + _TIMESTAMP_DELTA]
        summary[0] += 1
        if rows[row + _KIND] == _TOMBSTONE:
            summary[1] = 1


def sum_up(rows: cython.longlong[::1], count: cython.Py_ssize_t):
    """As `_sum_up`, of the first `count` rows."""
    summary = memoryview(bytearray(24)).cast("q")
    _check_bounds(len(rows), 0, count * _ROW_WIDTH)
    _sum_up(rows, 0, count, summary)
    return summary[0], summary[1] != 0, summary[2]


def copy_survivors(
    buffer: cython.const[cython.uchar][::1],
    rows: cython.longlong[::1],
    count: cython.Py_ssize_t,
    timestamp_shift: cython.longlong,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
):
    """Copy the survivors of the first `count` rows to `out[at:]`, which is large enough; where they end."""
    end: cython.Py_ssize_t
    _check_bounds(len(rows), 0, count * _ROW_WIDTH)
    _check_bounds(len(out), at, at + 3 * len(buffer))
    with cython.nogil:
        end = _copy_rows(buffer, rows, 0, count, timestamp_shift, out, at)
    return end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rebuild(
    buffer: cython.const[cython.uchar][::1],
    batches: cython.longlong[::1],
    of_batch: cython.Py_ssize_t,
    rows: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    summary: cython.longlong[::1],
    new_horizon_ms: cython.longlong,
    out: cython.uchar[::1],
    began: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write a batch with the survivors of rows [first, stop), or its header alone; where it ends.

    Base offset, last offset delta, producer and sequence stay; the CRC is left to the caller.
    """
    start: cython.Py_ssize_t = batches[of_batch + _BATCH_POSITION]
    attributes: cython.longlong = batches[of_batch + _BATCH_ATTRIBUTES]
    base_timestamp_ms: cython.longlong = batches[of_batch + _BATCH_BASE_TIMESTAMP]
    shift: cython.longlong = 0
    at: cython.Py_ssize_t = _copy(buffer, start, start + 61, out, began)
    if summary[0] == 0:
        # No codec, no delete horizon, no base timestamp.
        _put_big_endian(out, began + 21, attributes & 0x38, 2)
        _put_big_endian(out, began + 27, -1, 8)
    else:
        if attributes & 0x08 == 0:  # with log append time the greatest is that of every record
            _put_big_endian(out, began + 35, _wrapping_sum(base_timestamp_ms, summary[2]), 8)
        if new_horizon_ms >= 0:
            shift = _wrapping_sum(base_timestamp_ms, -new_horizon_ms)
            _put_big_endian(out, began + 21, attributes | 0x40, 2)
            _put_big_endian(out, began + 27, new_horizon_ms, 8)
        at = _copy_rows(buffer, rows, first, stop, shift, out, at)
    _put_big_endian(out, began + 8, at - began - 12, 4)
    _put_big_endian(out, began + 57, summary[0], 4)
    return at


@cython.cfunc
def _check_room(
    batches: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    out_size: cython.Py_ssize_t,
    at: cython.Py_ssize_t,
):
    """Three times the bytes of all batches are enough, since varints may grow."""
    last: cython.Py_ssize_t = (stop - 1) * _BATCH_WIDTH
    _check_bounds(len(batches), 0, stop * _BATCH_WIDTH)
    if stop > first:
        began = batches[first * _BATCH_WIDTH + _BATCH_POSITION]
        ended = batches[last + _BATCH_POSITION] + batches[last + _BATCH_SIZE]
        _check_bounds(out_size, at, at + 3 * (ended - began))


def write_survivors(
    buffer: cython.const[cython.uchar][::1],
    batches: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    rows: cython.longlong[::1],
    kept_offsets: cython.const[cython.longlong][::1],
    latest_offset: cython.longlong,
    delete_horizon_ms: cython.longlong,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    changed: cython.longlong[::1],
    counters: cython.longlong[::1],
):
    """Write what is left of the batches [first, stop) of a scan to `out[at:]`; where it ends.

    A batch that loses nothing is copied. One that loses some records keeps its offsets. One that loses all
    goes, unless its last offset is among `kept_offsets`: then its header stays. Tombstones in a batch
    without delete horizon get `delete_horizon_ms`, if the whole batch is clean, that is, not behind
    `latest_offset`. `changed` gets position and size of each batch that needs a new CRC.
    """
    summary: cython.longlong[::1] = memoryview(bytearray(24)).cast("q")
    batch: cython.Py_ssize_t
    of_batch: cython.Py_ssize_t
    began: cython.Py_ssize_t
    count: cython.Py_ssize_t
    row: cython.Py_ssize_t = 0
    sets_horizon: cython.bint
    last_offset: cython.longlong
    _check_bounds(len(verdicts), first, stop)
    _check_bounds(len(changed), 0, 2 * (counters[_BATCHES_CHANGED] + stop - first))
    _check_room(batches, first, stop, len(out), at)
    with cython.nogil:
        for batch in range(first, stop):
            of_batch = batch * _BATCH_WIDTH
            count = batches[of_batch + _BATCH_RECORD_COUNT]
            last_offset = batches[of_batch + _BATCH_LAST_OFFSET]
            counters[_RECORDS_READ] += count
            if verdicts[batch] & _DISCARD:
                count = 0
            _sum_up(rows, row, row + count, summary)
            row += count
            counters[_RECORDS_KEPT] += summary[0]
            sets_horizon = (
                summary[1] != 0
                and batches[of_batch + _BATCH_ATTRIBUTES] & 0x40 == 0
                and last_offset <= latest_offset
            )
            began = at
            if summary[0] > 0 and summary[0] == count and not sets_horizon:
                at = batches[of_batch + _BATCH_POSITION]
                at = _copy(buffer, at, at + batches[of_batch + _BATCH_SIZE], out, began)
            elif summary[0] > 0 or _has(kept_offsets, last_offset):
                at = _rebuild(
                    buffer,
                    batches,
                    of_batch,
                    rows,
                    row - count,
                    row,
                    summary,
                    delete_horizon_ms if sets_horizon else -1,
                    out,
                    began,
                )
                changed[2 * counters[_BATCHES_CHANGED]] = began
                changed[2 * counters[_BATCHES_CHANGED] + 1] = at - began
                counters[_BATCHES_CHANGED] += 1
    return at
