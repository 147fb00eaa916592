"""A record as a consumer sees it, and the loop that makes them from an indexed batch.

Compiled by Cython, or interpreted as is. consumer_record.pxd has the C types of the record.
"""

from __future__ import annotations

import cython

from odradek.records.kernels.layout import ROW_WIDTH, Column

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.odradek.client.consumer.consumer_record import PyObject_GC_UnTrack
    from cython.cimports.odradek.records.kernels.record_check import take_bytes, wrapping_sum
else:
    from odradek.records.kernels.record_check import find_bytes as take_bytes
    from odradek.records.kernels.record_check import wrapping_sum

# C integers by consumer_record.pxd; layout.py decides the numbers.
_ROW_WIDTH = ROW_WIDTH
_OFFSET_DELTA = Column.OFFSET_DELTA
_TIMESTAMP_DELTA = Column.TIMESTAMP_DELTA
_KEY_POSITION = Column.KEY_POSITION
_KEY_LENGTH = Column.KEY_LENGTH
_VALUE_POSITION = Column.VALUE_POSITION
_VALUE_LENGTH = Column.VALUE_LENGTH
_HEADERS_POSITION = Column.HEADERS_POSITION
_HEADER_COUNT = Column.HEADER_COUNT


class ConsumerRecord:
    """One record of one partition; `timestamp` is in ms, the producer's or (type 1) the broker's."""

    def __init__(
        self,
        topic,
        partition,
        offset,
        timestamp,
        key=None,
        value=None,
        headers=(),
        timestamp_type=0,
        leader_epoch=-1,
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch

    def _fields(self):
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.timestamp_type,
            self.leader_epoch,
        )

    def __class_getitem__(cls, _types):
        """Written in annotations; it means something to type checkers only."""
        return cls

    def __eq__(self, other):
        return self._fields() == other._fields() if isinstance(other, ConsumerRecord) else NotImplemented

    def __hash__(self):
        return hash(self._fields())

    def __repr__(self):
        place = f"topic={self.topic!r}, partition={self.partition}, offset={self.offset}"
        content = f"key={self.key!r}, value={self.value!r}, headers={self.headers!r}"
        return f"ConsumerRecord({place}, timestamp={self.timestamp}, {content})"

    def __reduce__(self):
        return ConsumerRecord, self._fields()


def _bytes_at(source, position, length):
    """A copy of the bytes there, or None for a negative length."""
    if length < 0:
        return None
    if length == 0:
        return b""
    if cython.compiled:
        copy = PyBytes_FromStringAndSize(cython.cast(cython.p_char, source + position), length)
    else:
        copy = bytes(source[position : position + length])
    return copy


@cython.final
@cython.cclass
class BatchRows:
    """The records of one batch that were indexed where they lie, which become objects on demand."""

    topic: str
    partition: cython.longlong
    source: cython.const[cython.uchar][::1]
    table: cython.longlong[::1]
    base_offset: cython.longlong
    timestamp_ms: cython.longlong
    timestamp_type: cython.longlong
    leader_epoch: cython.longlong

    def __init__(
        self, topic, partition, source, table, base_offset, timestamp_ms, timestamp_type, leader_epoch
    ):
        self.topic = topic
        self.partition = partition
        self.source = source
        self.table = table
        self.base_offset = base_offset
        self.timestamp_ms = timestamp_ms
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch

    def offset_at(self, row: cython.Py_ssize_t):
        """The offset of a row."""
        return wrapping_sum(self.base_offset, self.table[row * _ROW_WIDTH + _OFFSET_DELTA])

    def first_at(self, offset: cython.longlong, count: cython.Py_ssize_t):
        """The first of `count` rows whose offset is not below `offset`."""
        row: cython.Py_ssize_t = 0
        while row < count and self.base_offset + self.table[row * _ROW_WIDTH + _OFFSET_DELTA] < offset:
            row += 1
        return row

    def append_to(
        self,
        start: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        key_deserializer,
        value_deserializer,
        records: list,
    ):
        """Append the records of rows `start` to `end`."""
        row: cython.Py_ssize_t
        at: cython.Py_ssize_t
        record: ConsumerRecord
        if start >= end:
            return
        if cython.compiled:
            source = cython.address(self.source[0])
            table = cython.address(self.table[0])
        else:
            source, table = self.source, self.table
        for row in range(start, end):
            at = row * _ROW_WIDTH
            record = ConsumerRecord.__new__(ConsumerRecord)
            record.topic = self.topic
            record.partition = self.partition
            record.offset = wrapping_sum(self.base_offset, table[at + _OFFSET_DELTA])
            record.timestamp = self.timestamp_ms
            if self.timestamp_type == 0:
                record.timestamp = wrapping_sum(self.timestamp_ms, table[at + _TIMESTAMP_DELTA])
            record.timestamp_type = self.timestamp_type
            record.leader_epoch = self.leader_epoch
            record.key = _bytes_at(source, table[at + _KEY_POSITION], table[at + _KEY_LENGTH])
            record.value = _bytes_at(source, table[at + _VALUE_POSITION], table[at + _VALUE_LENGTH])
            record.headers = ()
            if table[at + _HEADER_COUNT] > 0:
                record.headers = self._headers(at)
            if key_deserializer is not None and record.key is not None:
                record.key = key_deserializer(record.key)
            if value_deserializer is not None and record.value is not None:
                record.value = value_deserializer(record.value)
            elif key_deserializer is None and cython.compiled:
                # Bytes are in no cycle: the garbage collector need not visit a million of such records.
                PyObject_GC_UnTrack(cython.cast(cython.p_void, record))
            records.append(record)

    @cython.cfunc
    def _headers(self, at: cython.Py_ssize_t):
        """The (key, value) pairs of a row that the index kernel has checked."""
        field_view: cython.longlong[::1] = memoryview(bytearray(16)).cast("q")
        position: cython.Py_ssize_t = self.table[at + _HEADERS_POSITION]
        end: cython.Py_ssize_t = len(self.source)
        headers = []
        _left: cython.longlong
        if cython.compiled:
            source, field = cython.address(self.source[0]), cython.address(field_view[0])
        else:
            source, field = self.source, field_view
        for _left in range(self.table[at + _HEADER_COUNT]):
            position = take_bytes(source, position, end, field, 0)
            # As Java does: a key that is not UTF-8 is shown with replacement characters, not refused.
            key = str(_bytes_at(source, field[0], field[1]), "utf-8", "replace")
            position = take_bytes(source, position, end, field, 0)
            headers.append((key, _bytes_at(source, field[0], field[1])))
        return tuple(headers)
