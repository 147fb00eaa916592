# C types of segment_reader.py.

cimport cython

from odradek.log.segment.offset_index cimport OffsetPosition
from odradek.log.segment.segment_appender cimport SegmentAppender

cdef Py_ssize_t _HEADER_SIZE, _LOG_OVERHEAD, _LENGTH_AT, _MAGIC_AT, _LAST_OFFSET_DELTA_AT, _MAX_TIMESTAMP_AT
cdef Py_ssize_t _WALK_CHUNK, _NEXT_READS_KEPT
cdef int _MAGIC


@cython.final
cdef class BatchSpan:
    cdef readonly long long position
    cdef readonly long long base_offset
    cdef readonly long long last_offset
    cdef readonly long long size
    cdef readonly long long max_timestamp_ms


@cython.final
cdef class Boundary:
    cdef readonly long long position
    cdef readonly long long base_offset


cdef class SegmentReader(SegmentAppender):
    cdef public tuple _next_reads

    cpdef position_of(self, long long offset)
    @cython.locals(entry=OffsetPosition)
    cdef long long _scan_start(self, long long offset) except -1
    cdef BatchSpan _checked_span(self, OffsetPosition entry)
    cpdef BatchSpan span_at(self, long long position)
    @cython.locals(span=BatchSpan, entry=OffsetPosition)
    cpdef Boundary floor_boundary(self, long long start, long long target)
    @cython.locals(newer=dict)
    cpdef note_next_read(self, long long offset, long long position)


@cython.locals(
    raw="const unsigned char *", base_offset="long long", length="long long", last_offset_delta="long long",
    is_batch=bint,
)
cdef BatchSpan _read_span(bytes chunk, Py_ssize_t at, long long position)
