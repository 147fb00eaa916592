"""The loop that writes records from lists of bytes, and the header before them; compiled by Cython, or not.

record_check.py has the layout of a record. Sizes first, then one exact buffer, then the bytes. batch.py has
the layout of a header.
"""

from __future__ import annotations

import cython

from odradek.records.crc import crc32c
from odradek.records.kernels.layout import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
)
from odradek.records.kernels.record_check import new_bytearray

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.libc.string import memcpy
    from cython.cimports.odradek.common.byte_access import (
        put_int16,
        put_int32,
        put_int64,
        put_uint32,
        writable_raw_bytes,
    )
    from cython.cimports.odradek.records.kernels.record_check import wrapping_difference
else:
    from odradek.common.byte_access import put_int16, put_int32, put_int64, put_uint32, writable_raw_bytes
    from odradek.records.kernels.record_check import wrapping_difference


@cython.ccall
@cython.nogil
@cython.exceptval(check=False)
def size_of_varint(number: cython.longlong) -> cython.Py_ssize_t:
    """Bytes that `number` takes as a varint."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (number << 1) ^ (number >> 63))
    size: cython.Py_ssize_t = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


# What writes takes a pointer: a view passed by value would be copied, 200 bytes of it, at every call.


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def write_varint(
    out: cython.p_uchar, position: cython.Py_ssize_t, number: cython.longlong
) -> cython.Py_ssize_t:
    """Write `number` at `position`; where the next byte goes."""
    raw: cython.ulonglong = cython.cast(cython.ulonglong, (number << 1) ^ (number >> 63))
    while raw >= 0x80:
        out[position] = (raw & 0x7F) | 0x80
        position += 1
        raw >>= 7
    out[position] = raw
    return position + 1


def put_varint(out: cython.uchar[::1], position: cython.Py_ssize_t, number: cython.longlong):
    """The same for Python, which has no pointers."""
    if cython.compiled:
        following = write_varint(cython.address(out[0]), position, number)
    else:
        following = write_varint(out, position, number)
    return following


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _size_of_bytes(field: bytes | None) -> cython.Py_ssize_t:
    """Bytes that a nullable field takes, its length included."""
    if field is None:
        return 1
    length: cython.Py_ssize_t = len(field)
    return size_of_varint(length) + length


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _write_bytes(out: cython.p_uchar, position: cython.Py_ssize_t, field: bytes | None) -> cython.Py_ssize_t:
    """Write a nullable field after its length; where the next byte goes."""
    if field is None:
        return write_varint(out, position, -1)
    length: cython.Py_ssize_t = len(field)
    position = write_varint(out, position, length)
    if length > 0:
        if cython.compiled:
            memcpy(cython.address(out[position]), PyBytes_AS_STRING(field), length)
        else:
            out[position : position + length] = field
    return position + length


@cython.cfunc
@cython.exceptval(-1, check=False)
def _size_of_headers(headers) -> cython.Py_ssize_t:
    """Bytes that the headers take, without their count."""
    size: cython.Py_ssize_t = 0
    for key, value in headers:
        size += _size_of_bytes(key.encode()) + _size_of_bytes(value)
    return size


@cython.ccall
@cython.exceptval(-1, check=False)
def size_of_body(
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: bytes | None,
    value: bytes | None,
    headers,
) -> cython.Py_ssize_t:
    """What the length of a record will say."""
    size: cython.Py_ssize_t = 1 + size_of_varint(timestamp_delta) + size_of_varint(offset_delta)
    size += _size_of_bytes(key) + _size_of_bytes(value)
    if headers:
        return size + size_of_varint(len(headers)) + _size_of_headers(headers)
    return size + 1


@cython.cfunc
@cython.exceptval(-1, check=False)
def write_record(
    out: cython.p_uchar,
    position: cython.Py_ssize_t,
    body: cython.Py_ssize_t,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: bytes | None,
    value: bytes | None,
    headers,
) -> cython.Py_ssize_t:
    """Write one record whose `body` was measured by size_of_body; where the next one goes."""
    position = write_varint(out, position, body)
    out[position] = 0
    position = write_varint(out, position + 1, timestamp_delta)
    position = write_varint(out, position, offset_delta)
    position = _write_bytes(out, position, key)
    position = _write_bytes(out, position, value)
    if not headers:
        return write_varint(out, position, 0)
    position = write_varint(out, position, len(headers))
    for name, content in headers:
        position = _write_bytes(out, position, name.encode())
        position = _write_bytes(out, position, content)
    return position


def put_record(
    out: cython.uchar[::1],
    position: cython.Py_ssize_t,
    body: cython.Py_ssize_t,
    timestamp_delta: cython.longlong,
    offset_delta: cython.longlong,
    key: bytes | None,
    value: bytes | None,
    headers,
):
    """The same for Python, which has no pointers."""
    if cython.compiled:
        following = write_record(
            cython.address(out[0]), position, body, timestamp_delta, offset_delta, key, value, headers
        )
    else:
        following = write_record(out, position, body, timestamp_delta, offset_delta, key, value, headers)
    return following


def encode_records(
    keys: list | None,
    values: list,
    timestamps_ms: list | None,
    base_timestamp_ms: cython.longlong,
    offset_deltas: list | None,
    headers: list | None,
    reserved: cython.Py_ssize_t,
):
    """The records of a batch as one bytearray that begins with `reserved` bytes for the header.

    Each column is a list with one entry per record, or None: no keys, all times the base's, offset deltas
    0, 1, 2 …, no headers. Keys and values are bytes or None; headers are sequences of (str, bytes or None).
    """
    count: cython.Py_ssize_t = len(values)
    for column in (keys, timestamps_ms, offset_deltas, headers):
        if column is not None and len(column) != count:
            raise ValueError(f"columns of different lengths: {len(column)} and {count}")
    total: cython.Py_ssize_t = reserved
    body: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for i in range(count):
        body = size_of_body(
            0 if timestamps_ms is None else wrapping_difference(timestamps_ms[i], base_timestamp_ms),
            i if offset_deltas is None else offset_deltas[i],
            None if keys is None else keys[i],
            values[i],
            None if headers is None else headers[i],
        )
        total += size_of_varint(body) + body
    encoded = new_bytearray(total)
    if cython.compiled:
        out = cython.cast(cython.p_uchar, PyByteArray_AS_STRING(encoded))
    else:
        out = encoded
    position: cython.Py_ssize_t = reserved
    timestamp_delta: cython.longlong
    offset_delta: cython.longlong
    for i in range(count):
        timestamp_delta = (
            0 if timestamps_ms is None else wrapping_difference(timestamps_ms[i], base_timestamp_ms)
        )
        offset_delta = i if offset_deltas is None else offset_deltas[i]
        key = None if keys is None else keys[i]
        value = values[i]
        record_headers = None if headers is None else headers[i]
        body = size_of_body(timestamp_delta, offset_delta, key, value, record_headers)
        position = write_record(
            out, position, body, timestamp_delta, offset_delta, key, value, record_headers
        )
    return encoded


def write_header(
    batch,
    base_offset,
    partition_leader_epoch,
    attributes,
    last_offset_delta,
    base_timestamp_ms,
    max_timestamp_ms,
    producer_id,
    producer_epoch,
    base_sequence,
    record_count,
):
    """Write the header of a whole batch, a memoryview of which all but the header is there; its CRC last."""
    raw = writable_raw_bytes(batch)
    put_int64(raw, 0, base_offset)
    put_int32(raw, 8, len(batch) - LOG_OVERHEAD)
    put_int32(raw, 12, partition_leader_epoch)
    raw[MAGIC_POSITION] = MAGIC
    put_int16(raw, ATTRIBUTES_POSITION, attributes)
    put_int32(raw, 23, last_offset_delta)
    put_int64(raw, 27, base_timestamp_ms)
    put_int64(raw, 35, max_timestamp_ms)
    put_int64(raw, 43, producer_id)
    put_int16(raw, 51, producer_epoch)
    put_int32(raw, 53, base_sequence)
    put_int32(raw, 57, record_count)
    put_uint32(raw, CRC_POSITION, crc32c(batch[ATTRIBUTES_POSITION:]))
