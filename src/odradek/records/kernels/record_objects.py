"""Records as Python objects, copied out of their batch; compiled by Cython, or interpreted as is.

record_check.py has the layout of a record and walks it; here each one that was walked becomes a `Record`.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import ROW_WIDTH, Column, Problem

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.odradek.records.kernels.record_check import (
        check_bounds,
        take_bytes,
        walk_record,
        wrapping_sum,
    )
else:
    from odradek.records.kernels.record_check import check_bounds, wrapping_sum
    from odradek.records.kernels.record_check import find_bytes as take_bytes
    from odradek.records.kernels.record_check import index_record as walk_record

# C integers by record_objects.pxd; layout.py decides the numbers.
_BYTES_LEFT = Problem.BYTES_LEFT
_OFFSET_DELTA = Column.OFFSET_DELTA
_TIMESTAMP_DELTA = Column.TIMESTAMP_DELTA
_KEY_POSITION = Column.KEY_POSITION
_KEY_LENGTH = Column.KEY_LENGTH
_VALUE_POSITION = Column.VALUE_POSITION
_VALUE_LENGTH = Column.VALUE_LENGTH
_HEADERS_POSITION = Column.HEADERS_POSITION
_HEADER_COUNT = Column.HEADER_COUNT
_ROW_WIDTH = ROW_WIDTH


@cython.final
@cython.no_gc
@cython.cclass
class Record:
    """One record, out of its batch: what a consumer sees. Not to be changed once made.

    `headers` holds (key, value) pairs. Only bytes and text hang on a record, so it can be in no cycle and the
    garbage collector need not visit it; reading a million records would else spend most of its time there.
    """

    if cython.compiled:
        offset = cython.declare(cython.longlong, visibility="readonly")
        timestamp_ms = cython.declare(cython.longlong, visibility="readonly")
        key = cython.declare(bytes, visibility="readonly")
        value = cython.declare(bytes, visibility="readonly")
        headers = cython.declare(tuple, visibility="readonly")
    else:
        __slots__ = ("headers", "key", "offset", "timestamp_ms", "value")

    def __init__(self, offset, timestamp_ms, key=None, value=None, headers=()):
        self.offset = offset
        self.timestamp_ms = timestamp_ms
        self.key = key
        self.value = value
        self.headers = headers

    def _fields(self):
        return (self.offset, self.timestamp_ms, self.key, self.value, self.headers)

    def __eq__(self, other):
        return self._fields() == other._fields() if isinstance(other, Record) else NotImplemented

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        return (
            f"Record(offset={self.offset}, timestamp_ms={self.timestamp_ms}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r})"
        )

    def __reduce__(self):
        return Record, self._fields()


@cython.cfunc
@cython.inline
def _bytes_at(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, length: cython.Py_ssize_t
):
    """A copy of the bytes there, or None for a negative length."""
    if length < 0:
        return None
    if length == 0:
        return b""
    if cython.compiled:
        copy = PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(buffer[position])), length)
    else:
        copy = bytes(buffer[position : position + length])
    return copy


@cython.cfunc
def _headers_at(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
):
    """The (key, value) pairs of a record that walk_record has passed."""
    field_view: cython.longlong[::1] = memoryview(bytearray(16)).cast("q")
    headers = []
    if cython.compiled:
        raw, field = cython.address(buffer[0]), cython.address(field_view[0])
    else:
        raw, field = buffer, field_view
    _i: cython.Py_ssize_t
    for _i in range(count):
        position = take_bytes(raw, position, end, field, 0)
        # As Java does: a key that is not UTF-8 is shown with replacement characters, not refused.
        key = str(_bytes_at(buffer, field[0], field[1]), "utf-8", "replace")
        position = take_bytes(raw, position, end, field, 0)
        headers.append((key, _bytes_at(buffer, field[0], field[1])))
    return tuple(headers)


def read_records(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    base_offset: cython.longlong,
    timestamp_ms: cython.longlong,
    is_log_append_time: cython.bint,
    records: list,
):
    """Append a Record to `records` for each one in `buffer[start:end]`.

    `timestamp_ms` is the base that deltas are added to or, with log append time, the time of every record.
    Answers (problem, position, record index); after a problem the caller drops what `records` got.
    """
    row_view: cython.longlong[::1] = memoryview(bytearray(_ROW_WIDTH * 8)).cast("q")
    position: cython.Py_ssize_t = start
    following: cython.Py_ssize_t
    index: cython.Py_ssize_t
    record: Record
    check_bounds(len(buffer), start, end)
    if cython.compiled:
        raw, row = cython.address(buffer[0]), cython.address(row_view[0])
    else:
        raw, row = buffer, row_view
    for index in range(count):
        following = walk_record(raw, position, end, row, 0)
        if following < 0:
            return -following, row[0], index
        record = Record.__new__(Record)
        record.offset = wrapping_sum(base_offset, row[_OFFSET_DELTA])
        record.timestamp_ms = timestamp_ms
        if not is_log_append_time:
            record.timestamp_ms = wrapping_sum(timestamp_ms, row[_TIMESTAMP_DELTA])
        record.key = _bytes_at(buffer, row[_KEY_POSITION], row[_KEY_LENGTH])
        record.value = _bytes_at(buffer, row[_VALUE_POSITION], row[_VALUE_LENGTH])
        record.headers = ()
        if row[_HEADER_COUNT] > 0:
            record.headers = _headers_at(buffer, row[_HEADERS_POSITION], following, row[_HEADER_COUNT])
        records.append(record)
        position = following
    return (0 if position == end else _BYTES_LEFT), position, count
