"""Records to columns in Arrow's memory layout, in one walk; compiled by Cython, or interpreted as is.

    numbers             offsets and timestamps of 8 bytes, timestamp types of 1
    a column of bytes   offsets    n + 1 integers of 4 bytes: entry i is content[offsets[i]:offsets[i + 1]]
                        content    all entries, end to end
                        validity   one bit per entry, least first; 0: null
    headers             offsets    n + 1 integers of 4 bytes: record i has headers[offsets[i]:offsets[i + 1]]
                        two columns of bytes, keys and values, one entry for each header

This file knows buffers only; arrow.py knows pyarrow. No column of bytes may pass 2 GiB: callers see to that.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import (
    BATCH_ROW_WIDTH,
    HEADER_SIZE,
    ROW_WIDTH,
    SMALLEST_HEADER,
    SMALLEST_RECORD,
    BatchColumn,
    Column,
    Problem,
)
from odradek.records.kernels.record_check import new_bytearray

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.odradek.records.kernels.record_check import take_bytes, walk_record, wrapping_sum
else:
    from odradek.records.kernels.record_check import find_bytes as take_bytes
    from odradek.records.kernels.record_check import index_record as walk_record
    from odradek.records.kernels.record_check import wrapping_sum

# C integers by column_sinks.pxd; layout.py decides the numbers.
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
_BATCH_WIDTH = BATCH_ROW_WIDTH
_BATCH_BASE_OFFSET = BatchColumn.BASE_OFFSET
_BATCH_SIZE = BatchColumn.SIZE_IN_BYTES
_BATCH_BASE_TIMESTAMP = BatchColumn.BASE_TIMESTAMP_MS
_BATCH_RECORDS = BatchColumn.RECORD_COUNT
_HEADER_SIZE = HEADER_SIZE
_SMALLEST_RECORD = SMALLEST_RECORD
_SMALLEST_HEADER = SMALLEST_HEADER
_NO_ROOM = 1 << 20
"""A problem that is ours alone: the columns of headers are too small."""


def _look(memory):
    """The address of writable memory whose owner never moves it; in Python, which has none, a view."""
    if cython.compiled:
        found = address_of(memory)  # noqa: F821, column_sinks.pxd has it
    else:
        found = memoryview(memory).cast("B")
    return found


@cython.cfunc
def _copied(old: object, used: cython.Py_ssize_t, memory: object):
    if used:
        memoryview(memory).cast("B")[:used] = memoryview(old).cast("B")[:used]
    return memory


@cython.cfunc
def _with_room(allocate: object, old: object, used: cython.Py_ssize_t, needed: cython.Py_ssize_t):
    """The same bytes with space for `needed`; exact at first, later twice what it was at least."""
    if needed <= len(old):
        return old
    return _copied(old, used, allocate(max(needed, 2 * used)))


@cython.cfunc
def _without_waste(allocate: object, old: object, used: cython.Py_ssize_t):
    """The same bytes; copied where most of the space was not needed."""
    if 2 * used >= len(old):
        return old
    return _copied(old, used, allocate(max(1, used)))


@cython.final
@cython.cclass
class BytesSink:
    """A column of bytes that is being filled. `reserve` makes the space that `append` trusts."""

    offsets: cython.p_int
    content: cython.p_uchar
    validity: cython.p_uchar
    count: cython.Py_ssize_t
    end: cython.Py_ssize_t
    nulls: cython.Py_ssize_t
    max_count: cython.Py_ssize_t
    max_end: cython.Py_ssize_t
    _allocate: object
    _offsets: object
    _content: object
    _validity: object

    def __init__(self, allocate):
        self._allocate = allocate
        self.count = self.end = self.nulls = 0
        self._offsets, self._content, self._validity = bytearray(4), bytearray(), bytearray()
        self._point()

    @cython.cfunc
    def _point(self):
        """Aim at the memory as it is now."""
        self.max_count = min(len(self._offsets) // 4 - 1, len(self._validity) * 8)
        self.max_end = len(self._content)
        self.content, self.validity = _look(self._content), _look(self._validity)
        if cython.compiled:
            self.offsets = cython.cast(cython.p_int, _look(self._offsets))
        else:
            self.offsets = _look(self._offsets).cast("i")

    @cython.ccall
    def reserve(self, count: cython.Py_ssize_t, size: cython.Py_ssize_t):
        """Reserve space for so many more entries of so many bytes together."""
        used: cython.Py_ssize_t = self.count
        total: cython.Py_ssize_t = used + count
        self._offsets = _with_room(self._allocate, self._offsets, (used + 1) * 4, (total + 1) * 4)
        self._content = _with_room(self._allocate, self._content, self.end, self.end + size)
        self._validity = _with_room(self._allocate, self._validity, (used + 7) // 8, (total + 7) // 8)
        self._point()

    def buffers(self):
        """(number of nulls, validity, offsets, content); valid once everything is appended."""
        self._content = _without_waste(self._allocate, self._content, self.end)
        self._offsets = _without_waste(self._allocate, self._offsets, (self.count + 1) * 4)
        self._point()
        return self.nulls, self._validity, self._offsets, self._content

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def append(
        self, raw: cython.p_const_uchar, position: cython.Py_ssize_t, length: cython.Py_ssize_t
    ) -> cython.void:
        """Append one entry, null if the length is negative."""
        if length >= 0:
            self.validity[self.count >> 3] |= 1 << (self.count & 7)
            if cython.compiled:
                memcpy(self.content + self.end, raw + position, length)
            else:
                self.content[self.end : self.end + length] = raw[position : position + length]
            self.end += length
        else:
            self.validity[self.count >> 3] &= 255 - (1 << (self.count & 7))  # it may be left of a fault
            self.nulls += 1
        self.count += 1
        self.offsets[self.count] = self.end

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def cut(self, count: cython.Py_ssize_t, end: cython.Py_ssize_t, nulls: cython.Py_ssize_t) -> cython.void:
        """Forget what came after a time when it was so long."""
        self.count = count
        self.end = end
        self.nulls = nulls


@cython.final
@cython.cclass
class RecordsSink:
    """The columns of records, batch after batch. A batch with a fault leaves nothing behind.

    `allocate(size)` gives memory for them: something that shows writable bytes and never moves them.
    Records before `from_offset` at the front of a batch are passed over: a fetch may begin inside one.
    """

    offsets: cython.p_longlong
    timestamps_ms: cython.p_longlong
    timestamp_types: cython.p_uchar
    header_offsets: cython.p_int
    keys: BytesSink
    values: BytesSink
    header_keys: BytesSink
    header_values: BytesSink
    count: cython.Py_ssize_t
    row: cython.p_longlong
    _allocate: object
    _row: bytearray
    _offsets: object
    _timestamps: object
    _types: object
    _header_offsets: object

    def __init__(self, allocate=new_bytearray):
        self._allocate = allocate
        self.count = 0
        self.keys, self.values = BytesSink(allocate), BytesSink(allocate)
        self.header_keys, self.header_values = BytesSink(allocate), BytesSink(allocate)
        self._row = bytearray((_ROW_WIDTH + 2) * 8)  # a record, and one of its headers
        self._offsets, self._timestamps, self._types = bytearray(), bytearray(), bytearray()
        self._header_offsets = bytearray(4)
        self._point()

    @cython.cfunc
    def _point(self):
        self.timestamp_types = _look(self._types)
        if cython.compiled:
            self.row = cython.cast(cython.p_longlong, _look(self._row))
            self.offsets = cython.cast(cython.p_longlong, _look(self._offsets))
            self.timestamps_ms = cython.cast(cython.p_longlong, _look(self._timestamps))
            self.header_offsets = cython.cast(cython.p_int, _look(self._header_offsets))
        else:
            self.row = _look(self._row).cast("q")
            self.offsets = _look(self._offsets).cast("q")
            self.timestamps_ms = _look(self._timestamps).cast("q")
            self.header_offsets = _look(self._header_offsets).cast("i")

    @cython.ccall
    def reserve(self, count: cython.Py_ssize_t, size: cython.Py_ssize_t):
        """Reserve space for so many more records, without headers, of so many bytes together."""
        used: cython.Py_ssize_t = self.count
        total: cython.Py_ssize_t = used + count
        self._offsets = _with_room(self._allocate, self._offsets, used * 8, total * 8)
        self._timestamps = _with_room(self._allocate, self._timestamps, used * 8, total * 8)
        self._types = _with_room(self._allocate, self._types, used, total)
        self._header_offsets = _with_room(
            self._allocate, self._header_offsets, (used + 1) * 4, (total + 1) * 4
        )
        self.keys.reserve(count, size)
        self.values.reserve(count, size)
        self._point()

    def __len__(self):
        return self.count

    @property
    def size(self):
        """Bytes of all keys and values."""
        return self.keys.end + self.values.end

    # The columns, valid once everything is appended; the memory may be longer than what it holds.

    @property
    def number_buffers(self):
        """Offsets, timestamps, types of timestamps."""
        return self._offsets, self._timestamps, self._types

    @property
    def header_buffers(self):
        """(number of headers, offsets of the lists, the keys' buffers, the values' buffers)."""
        keys = self.header_keys
        return keys.count, self._header_offsets, keys.buffers(), self.header_values.buffers()

    @property
    def bytes_buffers(self):
        """The buffers of the keys, and of the values."""
        return self.keys.buffers(), self.values.buffers()

    # Filling.

    def append_batch(
        self,
        buffer: cython.const[cython.uchar][::1],
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        timestamp_ms: cython.longlong,
        is_log_append_time: cython.bint,
        from_offset: cython.longlong,
    ):
        """Append `count` records that fill `buffer[start:end]`; answers (problem, position, record index).

        `timestamp_ms` is the base that deltas are added to or, with log append time, the time of all.
        """
        if not 0 <= start <= end <= len(buffer):
            raise IndexError(f"{start}:{end} is not within {len(buffer)}")
        if not 0 <= count <= (end - start) // _SMALLEST_RECORD:
            raise IndexError(f"{count} records are not within {end - start} bytes")
        self.reserve(count, end - start)
        if cython.compiled:
            raw = cython.address(buffer[0])
        else:
            raw = buffer
        problem: cython.Py_ssize_t = _NO_ROOM
        while problem == _NO_ROOM:
            with cython.nogil:
                problem = self._walk(
                    raw, start, end, count, base_offset, timestamp_ms, is_log_append_time, from_offset
                )
            if problem == _NO_ROOM:
                self._reserve_headers(end - start)
        return problem, self.row[0], self.row[1]

    def append_run(
        self,
        buffer: cython.const[cython.uchar][::1],
        batches: cython.longlong[::1],
        first: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        from_offset: cython.longlong,
    ):
        """Append the records of batches that `find_run` found; where the first fault is, or `end`."""
        index: cython.Py_ssize_t = first
        at: cython.Py_ssize_t = 0
        problem: cython.Py_ssize_t = 0
        if not 0 <= first * _BATCH_WIDTH <= end * _BATCH_WIDTH <= len(batches):
            raise IndexError(f"{first}:{end} is not within {len(batches) // _BATCH_WIDTH} batches")
        end = self._reserve_run(len(buffer), batches, first, end)
        if cython.compiled:
            raw = cython.address(buffer[0])
        else:
            raw = buffer
        while index < end:
            with cython.nogil:
                while index < end:
                    at = index * _BATCH_WIDTH
                    problem = self._walk(
                        raw,
                        batches[at] + _HEADER_SIZE,
                        batches[at] + batches[at + _BATCH_SIZE],
                        batches[at + _BATCH_RECORDS],
                        batches[at + _BATCH_BASE_OFFSET],
                        batches[at + _BATCH_BASE_TIMESTAMP],
                        False,
                        from_offset,
                    )
                    if problem != 0:
                        break
                    index += 1
            if problem == _NO_ROOM:
                self._reserve_headers(batches[at + _BATCH_SIZE])
            elif problem != 0:
                break
        return index

    @cython.cfunc
    def _reserve_run(
        self,
        size: cython.Py_ssize_t,
        batches: cython.longlong[::1],
        first: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Reserve space for batches; the first that a buffer of `size` bytes cannot have, or `end`."""
        index: cython.Py_ssize_t
        rows: cython.longlong = 0
        total: cython.longlong = 0
        for index in range(first, end):
            at: cython.Py_ssize_t = index * _BATCH_WIDTH
            batch_size: cython.longlong = batches[at + _BATCH_SIZE]
            records: cython.longlong = batches[at + _BATCH_RECORDS]
            if (
                not 0 <= batches[at] <= size - _HEADER_SIZE
                or not _HEADER_SIZE <= batch_size <= size - batches[at]
                or not 0 <= records <= (batch_size - _HEADER_SIZE) // _SMALLEST_RECORD
            ):
                end = index
                break
            rows += records
            total += batch_size
        self.reserve(rows, total)
        return end

    @cython.cfunc
    def _reserve_headers(self, size: cython.Py_ssize_t):
        """Reserve space for the headers of a batch of so many bytes, however many it has."""
        self.header_keys.reserve(size // _SMALLEST_HEADER, size)
        self.header_values.reserve(size // _SMALLEST_HEADER, size)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _walk(
        self,
        raw: cython.p_const_uchar,
        position: cython.Py_ssize_t,
        limit: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        base_offset: cython.longlong,
        timestamp_ms: cython.longlong,
        is_log_append_time: cython.bint,
        from_offset: cython.longlong,
    ) -> cython.Py_ssize_t:
        """Append the records of one batch; the problem, with its position and record in row[0], row[1]."""
        problem: cython.Py_ssize_t = 0
        following: cython.Py_ssize_t
        offset: cython.longlong
        index: cython.Py_ssize_t = 0
        row = self.row
        at: cython.Py_ssize_t = self.count
        key_end: cython.Py_ssize_t = self.keys.end
        key_nulls: cython.Py_ssize_t = self.keys.nulls
        value_end: cython.Py_ssize_t = self.values.end
        value_nulls: cython.Py_ssize_t = self.values.nulls
        headers: cython.Py_ssize_t = self.header_keys.count
        header_key_end: cython.Py_ssize_t = self.header_keys.end
        header_value_end: cython.Py_ssize_t = self.header_values.end
        header_nulls: cython.Py_ssize_t = self.header_values.nulls
        while index < count:
            following = walk_record(raw, position, limit, row, 0)
            if following < 0:
                problem = -following
                position = row[0]
                break
            offset = wrapping_sum(base_offset, row[_OFFSET_DELTA])
            if offset >= from_offset or at > self.count:
                if row[_HEADER_COUNT] > 0 and not self._take_headers(raw, following):
                    problem = _NO_ROOM
                    break
                self.offsets[at] = offset
                self.timestamps_ms[at] = (
                    timestamp_ms if is_log_append_time else wrapping_sum(timestamp_ms, row[_TIMESTAMP_DELTA])
                )
                self.timestamp_types[at] = is_log_append_time
                self.keys.append(raw, row[_KEY_POSITION], row[_KEY_LENGTH])
                self.values.append(raw, row[_VALUE_POSITION], row[_VALUE_LENGTH])
                at += 1
                self.header_offsets[at] = self.header_keys.count
            position = following
            index += 1
        if problem == 0 and position != limit:
            problem = _BYTES_LEFT
        row[0] = position
        row[1] = index
        if problem == 0:
            self.count = at
        else:
            self.keys.cut(self.count, key_end, key_nulls)
            self.values.cut(self.count, value_end, value_nulls)
            self.header_keys.cut(headers, header_key_end, 0)
            self.header_values.cut(headers, header_value_end, header_nulls)
        return problem

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _take_headers(self, raw: cython.p_const_uchar, limit: cython.Py_ssize_t) -> cython.bint:
        """Append the headers of the record in `row`, which ends at `limit`; False if there is no space."""
        row = self.row
        position: cython.Py_ssize_t = row[_HEADERS_POSITION]
        size: cython.Py_ssize_t = limit - position
        _left: cython.longlong
        if (
            self.header_keys.count + row[_HEADER_COUNT]
            > min(self.header_keys.max_count, self.header_values.max_count)
            or self.header_keys.end + size > self.header_keys.max_end
            or self.header_values.end + size > self.header_values.max_end
        ):
            return False
        for _left in range(row[_HEADER_COUNT]):
            position = take_bytes(raw, position, limit, row, _ROW_WIDTH)
            self.header_keys.append(raw, row[_ROW_WIDTH], row[_ROW_WIDTH + 1])
            position = take_bytes(raw, position, limit, row, _ROW_WIDTH)
            self.header_values.append(raw, row[_ROW_WIDTH], row[_ROW_WIDTH + 1])
        return True
