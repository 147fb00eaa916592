"""Columns in Arrow's memory layout to records; compiled by Cython, or interpreted as is.

    a column of bytes   offsets    n + 1 integers: entry i is content[offsets[i]:offsets[i + 1]]
                        content    all entries, end to end
                        validity   one bit per entry, least first; 0: null

This file knows buffers only; arrow.py knows pyarrow. The reverse is in column_sinks.py.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import HEADER_SIZE
from odradek.records.kernels.record_check import new_bytearray

if cython.compiled:
    from cython.cimports.libc.string import memcpy
    from cython.cimports.odradek.records.kernels.column_sinks import address_of
    from cython.cimports.odradek.records.kernels.encoding import size_of_varint, write_varint
    from cython.cimports.odradek.records.kernels.hashes import murmur2_at
    from cython.cimports.odradek.records.kernels.record_check import wrapping_difference
else:
    from odradek.records.kernels.encoding import put_varint as write_varint
    from odradek.records.kernels.encoding import size_of_varint
    from odradek.records.kernels.hashes import murmur2
    from odradek.records.kernels.record_check import wrapping_difference

# C integers by columns.pxd; layout.py decides the numbers.
_HEADER_SIZE = HEADER_SIZE
_MAX_INT32 = 2**31 - 1


@cython.final
@cython.cclass
class BytesSource:
    """A column of bytes in an Arrow array with 64-bit offsets, beginning at its entry `first`.

    The array must be valid (pyarrow's validate): positions are trusted. No validity buffer: no nulls. No
    offsets: nothing but nulls.
    """

    validity: cython.const[cython.uchar][::1]
    offsets: cython.const[cython.longlong][::1]
    content: cython.const[cython.uchar][::1]
    first: cython.Py_ssize_t

    def __init__(self, validity, offsets, content, first: cython.Py_ssize_t):
        self.validity = validity
        self.offsets = offsets
        self.content = content
        self.first = first

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def length(self, index: cython.Py_ssize_t) -> cython.longlong:
        """Bytes of an entry, -1 for null."""
        index += self.first
        if len(self.offsets) == 0:
            return -1
        if len(self.validity) > 0 and not (self.validity[index >> 3] >> (index & 7)) & 1:
            return -1
        return self.offsets[index + 1] - self.offsets[index]

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def size(self, index: cython.Py_ssize_t) -> cython.longlong:
        """Bytes of an entry in a record, its length included."""
        length: cython.longlong = self.length(index)
        return size_of_varint(length) + length if length > 0 else 1

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def put(
        self, index: cython.Py_ssize_t, out: cython.p_uchar, position: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Write an entry after its length; where the next byte goes."""
        length: cython.longlong = self.length(index)
        start: cython.Py_ssize_t
        position = write_varint(out, position, length)
        if length <= 0:
            return position
        start = self.offsets[self.first + index]
        if cython.compiled:
            memcpy(cython.address(out[position]), cython.address(self.content[start]), length)
        else:
            out[position : position + length] = self.content[start : start + length]
        return position + length


def partition_keys(
    keys: BytesSource,
    count: cython.Py_ssize_t,
    partitions: cython.int,
    without_key: cython.int,
    out: cython.int[::1],
):
    """Write to `out` the partition of each key as Java's clients choose it, `without_key` for a null one."""
    index: cython.Py_ssize_t
    start: cython.Py_ssize_t
    length: cython.longlong
    digest: cython.longlong
    with cython.nogil:
        for index in range(count):
            length = keys.length(index)
            if length < 0:
                out[index] = without_key
                continue
            start = keys.offsets[keys.first + index]
            if cython.compiled:
                # The address of nothing may not be taken from an empty view.
                digest = murmur2_at(
                    cython.address(keys.content[start]) if length > 0 else cython.NULL, length
                )
            else:
                digest = murmur2(bytes(keys.content[start : start + length]))
            out[index] = (digest & 0x7FFFFFFF) % partitions


@cython.final
@cython.cclass
class RecordSource:
    """The columns that records are made of.

    `header_offsets` has one entry more than there are records. Without `offsets` (empty), the records of a
    batch are numbered.
    """

    keys: BytesSource
    values: BytesSource
    timestamps_ms: cython.const[cython.longlong][::1]
    offsets: cython.const[cython.longlong][::1]
    header_offsets: cython.const[cython.longlong][::1]
    header_keys: BytesSource
    header_values: BytesSource
    count: cython.Py_ssize_t

    def __init__(self, keys, values, timestamps_ms, offsets, header_offsets, header_keys, header_values):
        self.keys = keys
        self.values = values
        self.timestamps_ms = timestamps_ms
        self.offsets = offsets
        self.header_offsets = header_offsets
        self.header_keys = header_keys
        self.header_values = header_values
        self.count = len(timestamps_ms)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def offset_delta(self, index: cython.Py_ssize_t, start: cython.Py_ssize_t) -> cython.longlong:
        """Of a record in a batch whose first is `start`."""
        return self.offsets[index] - self.offsets[start] if len(self.offsets) > 0 else index - start

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def body(self, index: cython.Py_ssize_t, start: cython.Py_ssize_t) -> cython.longlong:
        """What the length of a record will say."""
        header: cython.Py_ssize_t
        size: cython.longlong = 1 + size_of_varint(self.offset_delta(index, start))
        size += size_of_varint(wrapping_difference(self.timestamps_ms[index], self.timestamps_ms[start]))
        size += self.keys.size(index) + self.values.size(index)
        size += size_of_varint(self.header_offsets[index + 1] - self.header_offsets[index])
        for header in range(self.header_offsets[index], self.header_offsets[index + 1]):
            size += self.header_keys.size(header) + self.header_values.size(header)
        return size

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def put(
        self,
        index: cython.Py_ssize_t,
        start: cython.Py_ssize_t,
        out: cython.p_uchar,
        position: cython.Py_ssize_t,
    ) -> cython.Py_ssize_t:
        """Write one record of a batch whose first is `start`; where the next one goes."""
        header: cython.Py_ssize_t
        position = write_varint(out, position, self.body(index, start))
        out[position] = 0
        position += 1
        position = write_varint(
            out, position, wrapping_difference(self.timestamps_ms[index], self.timestamps_ms[start])
        )
        position = write_varint(out, position, self.offset_delta(index, start))
        position = self.keys.put(index, out, position)
        position = self.values.put(index, out, position)
        position = write_varint(out, position, self.header_offsets[index + 1] - self.header_offsets[index])
        for header in range(self.header_offsets[index], self.header_offsets[index + 1]):
            position = self.header_keys.put(header, out, position)
            position = self.header_values.put(header, out, position)
        return position

    def fit(self, start: cython.Py_ssize_t, max_bytes: cython.longlong):
        """(end, bytes): where the records that go into one batch, at least one, end, and their size."""
        total: cython.longlong = 0
        size: cython.longlong
        index: cython.Py_ssize_t = start
        with cython.nogil:
            while index < self.count:
                size = self.body(index, start)
                size += size_of_varint(size)
                if index > start and (
                    total + size > max_bytes or self.offset_delta(index, start) > _MAX_INT32
                ):
                    break
                total += size
                index += 1
        return index, total

    def encode(
        self,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        allocate=new_bytearray,
    ):
        """Records `start` to `end`, measured by `fit`, after space for a header; and their latest time.

        `allocate(size)` gives memory for them: something that shows writable bytes and never moves them.
        """
        encoded = allocate(_HEADER_SIZE + size)
        if cython.compiled:
            out = address_of(encoded)
        else:
            out = memoryview(encoded).cast("B")
        position: cython.Py_ssize_t = _HEADER_SIZE
        latest_ms: cython.longlong = self.timestamps_ms[start]
        index: cython.Py_ssize_t
        with cython.nogil:
            for index in range(start, end):
                position = self.put(index, start, out, position)
                latest_ms = max(latest_ms, self.timestamps_ms[index])
        return encoded, latest_ms
