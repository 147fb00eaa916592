"""The loops that walk single records and check them; compiled by Cython, or interpreted as is.

One record, as it lies in a batch (after decompression):

    length            varint    bytes that follow
    attributes        1 byte    unused, whatever it holds
    timestamp delta   varlong   ms after the batch's base timestamp
    offset delta      varint    after the batch's base offset
    key length        varint    -1: no key
    key
    value length      varint    -1: no value
    value
    header count      varint
    header key length, header key, header value length (-1: null), header value   … `header count` times

A varint is zigzag, seven bits a byte, least first: at most 5 bytes for 32 bits, 10 for 64. One that is longer
or holds more bits is refused.

Nothing outside the given bounds is ever read, whatever the bytes are. A fault in the bytes is an answer
(problem, position, record index), never an exception. Long loops run without the interpreter lock. Only the
branches on `cython.compiled` differ between the two ways of running this file.
"""

from __future__ import annotations

import cython

from odradek.common.interpreted import warn_interpreted
from odradek.records.kernels.layout import ROW_WIDTH, SMALLEST_RECORD, Column, Problem

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
elif __name__ == "odradek.records.kernels.record_check":
    warn_interpreted()

IS_COMPILED = cython.compiled

# C integers by record_check.pxd, so that the loops need no Python object; layout.py decides the numbers.
_RECORD_LENGTH = Problem.RECORD_LENGTH
_BAD_TIMESTAMP_DELTA = Problem.TIMESTAMP_DELTA
_BAD_OFFSET_DELTA = Problem.OFFSET_DELTA
_BAD_KEY = Problem.KEY
_BAD_VALUE = Problem.VALUE
_BAD_HEADER_COUNT = Problem.HEADER_COUNT
_BAD_HEADER_KEY = Problem.HEADER_KEY
_BAD_HEADER_VALUE = Problem.HEADER_VALUE
_NOT_FILLED = Problem.NOT_FILLED
_TOO_FEW = Problem.TOO_FEW
_BYTES_LEFT = Problem.BYTES_LEFT
_WRONG_OFFSET = Problem.WRONG_OFFSET
_NO_KEY = Problem.NO_KEY

_OFFSET_DELTA = Column.OFFSET_DELTA
_TIMESTAMP_DELTA = Column.TIMESTAMP_DELTA
_KEY_POSITION = Column.KEY_POSITION
_KEY_LENGTH = Column.KEY_LENGTH
_VALUE_POSITION = Column.VALUE_POSITION
_VALUE_LENGTH = Column.VALUE_LENGTH
_HEADERS_POSITION = Column.HEADERS_POSITION
_HEADER_COUNT = Column.HEADER_COUNT
_ROW_WIDTH = ROW_WIDTH
# Where `check_raw_records` leaves what it found.
_FOUND_POSITION, _FOUND_INDEX, _FOUND_LEAST, _FOUND_GREATEST = range(4)
_SMALLEST_RECORD = SMALLEST_RECORD


def new_bytearray(size: cython.Py_ssize_t):
    """A bytearray whose content is not yet decided: memory that is never written is never touched."""
    if cython.compiled:
        fresh = PyByteArray_FromStringAndSize(cython.NULL, size)
    else:
        fresh = bytearray(size)
    return fresh


# Varints.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(
    buffer: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    longest: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Bytes of the varint at `position`; 0 if it is cut off, too long or out of range."""
    size: cython.Py_ssize_t = 0
    byte: cython.uchar
    while size < longest and position + size < end:
        byte = buffer[position + size]
        size += 1
        if byte < 0x80:
            # The last byte of a full-length varint has space for 4 bits of 32, or 1 bit of 64.
            if size == longest and byte > (0x0F if longest == 5 else 0x01):
                return 0
            return size
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_value(
    buffer: cython.p_const_uchar, position: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.longlong:
    """The number in a varint whose size is known to be right."""
    raw: cython.ulonglong = buffer[position] & 0x7F
    byte: cython.ulonglong
    i: cython.Py_ssize_t
    for i in range(1, size):
        byte = buffer[position + i] & 0x7F
        raw |= byte << (7 * i)
    return cython.cast(cython.longlong, (raw >> 1) ^ -(raw & 1))


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def wrapping_sum(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """A sum of 64 bits that wraps, as Java's does: both numbers come from outside."""
    if cython.compiled:
        total = cython.cast(
            cython.longlong, cython.cast(cython.ulonglong, base) + cython.cast(cython.ulonglong, delta)
        )
    else:
        total = (base + delta + 2**63) % 2**64 - 2**63
    return total


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def wrapping_difference(number: cython.longlong, base: cython.longlong) -> cython.longlong:
    """The delta that wrapping_sum undoes."""
    if cython.compiled:
        delta = cython.cast(
            cython.longlong, cython.cast(cython.ulonglong, number) - cython.cast(cython.ulonglong, base)
        )
    else:
        delta = (number - base + 2**63) % 2**64 - 2**63
    return delta


# One record.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take_bytes(
    buffer: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    row: cython.p_longlong,
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Note in row[at] and row[at + 1] where the bytes after a length lie; the position after them, or -1."""
    size: cython.Py_ssize_t = _varint_size(buffer, position, end, 5)
    if size == 0:
        return -1
    length: cython.longlong = _varint_value(buffer, position, size)
    position += size
    if length < -1 or length > end - position:
        return -1
    row[at] = position
    row[at + 1] = length
    return position + length if length > 0 else position


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_headers(
    buffer: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    row: cython.p_longlong,
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Step over the row's headers, with row[at] and row[at + 1] as scratch; like walk_record otherwise."""
    _left: cython.longlong
    after: cython.Py_ssize_t
    for _left in range(row[at + _HEADER_COUNT], 0, -1):
        after = take_bytes(buffer, position, end, row, at)
        if after < 0 or row[at + 1] < 0:
            row[at] = position
            return -_BAD_HEADER_KEY
        position = after
        after = take_bytes(buffer, position, end, row, at)
        if after < 0:
            row[at] = position
            return -_BAD_HEADER_VALUE
        position = after
    return position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def walk_record(
    buffer: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    row: cython.p_longlong,
    at: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Fill `row[at:at + _ROW_WIDTH]` from the record at `position`; the position after it.

    A fault gives the problem as a negative number, and leaves its position in row[at].
    """
    start: cython.Py_ssize_t = position
    row[at] = position
    if position >= limit:
        return -_TOO_FEW
    size: cython.Py_ssize_t = _varint_size(buffer, position, limit, 5)
    length: cython.longlong = _varint_value(buffer, position, size) if size else -1
    position += size
    if length < _SMALLEST_RECORD - 1 or length > limit - position:
        return -_RECORD_LENGTH
    end: cython.Py_ssize_t = position + length

    position += 1  # the attributes, which are unused
    row[at] = position
    size = _varint_size(buffer, position, end, 10)
    if size == 0:
        return -_BAD_TIMESTAMP_DELTA
    timestamp_delta: cython.longlong = _varint_value(buffer, position, size)
    position += size
    row[at] = position
    size = _varint_size(buffer, position, end, 5)
    if size == 0:
        return -_BAD_OFFSET_DELTA
    offset_delta: cython.longlong = _varint_value(buffer, position, size)
    position += size

    row[at] = position
    position = take_bytes(buffer, position, end, row, at + _KEY_POSITION)
    if position < 0:
        return -_BAD_KEY
    row[at] = position
    position = take_bytes(buffer, position, end, row, at + _VALUE_POSITION)
    if position < 0:
        return -_BAD_VALUE

    row[at] = position
    size = _varint_size(buffer, position, end, 5)
    length = _varint_value(buffer, position, size) if size else -1
    if length < 0:
        return -_BAD_HEADER_COUNT
    position += size
    row[at + _HEADERS_POSITION] = position
    row[at + _HEADER_COUNT] = length
    if length > 0:
        position = _take_headers(buffer, position, end, row, at)
        if position < 0:
            return position
    if position != end:
        row[at] = position
        return -_NOT_FILLED
    row[at] = start
    row[at + _OFFSET_DELTA] = offset_delta
    row[at + _TIMESTAMP_DELTA] = timestamp_delta
    return position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _short_varint(buffer: cython.p_const_uchar, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """A varint of at most three bytes, as its raw number times four, plus its size; 0 for a longer one."""
    raw: cython.Py_ssize_t = buffer[position]
    byte: cython.Py_ssize_t
    if raw < 0x80:
        return raw << 2 | 1
    byte = buffer[position + 1]
    raw = raw & 0x7F | byte << 7
    if byte < 0x80:
        return raw << 2 | 2
    byte = buffer[position + 2]
    raw = raw & 0x3FFF | byte << 14
    return raw << 2 | 3 if byte < 0x80 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _walk_plain_record(
    buffer: cython.p_const_uchar,
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    row: cython.p_longlong,
) -> cython.Py_ssize_t:
    """Like walk_record for a record as most are, without headers and with small numbers; 0 for any other.

    Of the row it fills the two deltas and the key's length. Numbers may reach beyond the record, but not
    beyond `limit`; then the record does not end where it says, and is none of these.
    """
    # The length, the attributes, two deltas and the key's length, of three bytes each.
    if limit - position < 13:
        return 0
    length: cython.Py_ssize_t = _short_varint(buffer, position)
    position += length & 3
    end: cython.Py_ssize_t = position + (length >> 3)
    timestamp_delta: cython.Py_ssize_t = _short_varint(buffer, position + 1)
    position += 1 + (timestamp_delta & 3)
    offset_delta: cython.Py_ssize_t = _short_varint(buffer, position)
    position += offset_delta & 3
    key_length: cython.Py_ssize_t = _short_varint(buffer, position)
    position += key_length & 3
    if length == 0 or timestamp_delta == 0 or offset_delta == 0 or key_length == 0 or length & 4:
        return 0
    if key_length & 4:
        if key_length >> 2 != 1:  # -1, no key
            return 0
    else:
        position += key_length >> 3
    if limit - position < 4:
        return 0
    value_length: cython.Py_ssize_t = _short_varint(buffer, position)
    position += (value_length & 3) + (value_length >> 3)
    if value_length == 0 or value_length & 4 or position + 1 != end or end > limit or buffer[position] != 0:
        return 0
    row[_OFFSET_DELTA] = (offset_delta >> 3) ^ -(offset_delta >> 2 & 1)
    row[_TIMESTAMP_DELTA] = (timestamp_delta >> 3) ^ -(timestamp_delta >> 2 & 1)
    row[_KEY_LENGTH] = -1 if key_length & 4 else key_length >> 3
    return end


# The same for Python, which has no pointers.


def find_bytes(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    row: cython.longlong[::1],
    at: cython.Py_ssize_t,
):
    """take_bytes."""
    if cython.compiled:
        following = take_bytes(cython.address(buffer[0]), position, end, cython.address(row[0]), at)
    else:
        following = take_bytes(buffer, position, end, row, at)
    return following


def index_record(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    row: cython.longlong[::1],
    at: cython.Py_ssize_t,
):
    """walk_record."""
    if cython.compiled:
        following = walk_record(cython.address(buffer[0]), position, limit, cython.address(row[0]), at)
    else:
        following = walk_record(buffer, position, limit, row, at)
    return following


def check_records_into(
    buffer, start, end, count, last_offset_delta, is_strict, requires_key, untimed_delta, row
):
    """check_raw_records."""
    problem, *row[:4] = check_records(
        buffer, start, end, count, last_offset_delta, is_strict, requires_key, untimed_delta
    )
    return problem


# All records of a batch.


def check_records(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    last_offset_delta: cython.longlong,
    is_strict: cython.bint,
    requires_key: cython.bint,
    untimed_delta: cython.longlong,
):
    """Check that `count` records fill `buffer[start:end]`.

    Strict: offset deltas are 0, 1, 2 …; else they grow and stay within the batch, as compaction leaves them.
    Answers (problem, position, record index, least timestamp delta, greatest timestamp delta). The last two
    leave out records without timestamp, whose delta is `untimed_delta`; that is both if there is no other.
    """
    row_view: cython.longlong[::1] = memoryview(bytearray(_ROW_WIDTH * 8)).cast("q")
    problem: cython.Py_ssize_t
    check_bounds(len(buffer), start, end)
    if cython.compiled:
        raw, row = cython.address(buffer[0]), cython.address(row_view[0])
    else:
        raw, row = buffer, row_view
    with cython.nogil:
        problem = check_raw_records(
            raw, start, end, count, last_offset_delta, is_strict, requires_key, untimed_delta, row
        )
    return problem, row[_FOUND_POSITION], row[_FOUND_INDEX], row[_FOUND_LEAST], row[_FOUND_GREATEST]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def check_raw_records(
    raw: cython.p_const_uchar,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    last_offset_delta: cython.longlong,
    is_strict: cython.bint,
    requires_key: cython.bint,
    untimed_delta: cython.longlong,
    row: cython.p_longlong,
) -> cython.Py_ssize_t:
    """The problem; all else that `check_records` reports is in `row`, which has space for a record."""
    problem: cython.Py_ssize_t = 0
    position: cython.Py_ssize_t = start
    following: cython.Py_ssize_t = start
    index: cython.longlong = 0
    last_delta: cython.longlong = -1
    least: cython.longlong = untimed_delta
    greatest: cython.longlong = untimed_delta
    timestamp_delta: cython.longlong
    while index < count:
        following = _walk_plain_record(raw, position, end, row)
        if following == 0:
            following = walk_record(raw, position, end, row, 0)
        if following < 0:
            problem = -following
            position = row[0]
            break
        if (
            row[_OFFSET_DELTA] != index
            if is_strict
            else row[_OFFSET_DELTA] <= last_delta or row[_OFFSET_DELTA] > last_offset_delta
        ):
            problem = _WRONG_OFFSET
            break
        if requires_key and row[_KEY_LENGTH] < 0:
            problem = _NO_KEY
            break
        last_delta = row[_OFFSET_DELTA]
        timestamp_delta = row[_TIMESTAMP_DELTA]
        if timestamp_delta != untimed_delta:
            if timestamp_delta < least or least == untimed_delta:
                least = timestamp_delta
            if timestamp_delta > greatest or greatest == untimed_delta:
                greatest = timestamp_delta
        position = following
        index += 1
    if problem == 0 and position != end:
        problem = _BYTES_LEFT
    row[_FOUND_POSITION] = position
    row[_FOUND_INDEX] = index
    row[_FOUND_LEAST] = least
    row[_FOUND_GREATEST] = greatest
    return problem


@cython.ccall
def check_bounds(size: cython.Py_ssize_t, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """A caller's mistake, unlike a fault in the bytes, is raised."""
    if not 0 <= start <= end <= size:
        raise IndexError(f"{start}:{end} is not within {size}")
