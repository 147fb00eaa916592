# C types of segment_appender.py.

cimport cython
from cpython.array cimport array as c_array

from odradek.log.files.log_file cimport LogFile
from odradek.log.segment.offset_index cimport OffsetIndex
from odradek.log.segment.time_index cimport TimeIndex

cdef long long _BOUNDARIES_KEPT


cdef class SegmentAppender:
    cdef readonly long long base_offset
    cdef public long long index_interval_bytes
    cdef public LogFile log
    cdef public OffsetIndex offset_index
    cdef public TimeIndex time_index
    cdef public long long _bytes_since_index
    cdef public object _first_timestamp_ms
    cdef bint _is_max_timestamp_known
    cdef long long _max_timestamp_ms
    cdef long long _max_timestamp_offset
    cdef c_array _boundaries
    cdef Py_ssize_t _next_boundary
    cdef public long long _pending_entries
    cdef public long long _checked_index_bytes
    cdef public bint _is_index_full

    @cython.locals(position="long long")
    cpdef Py_ssize_t append(self, payload, long long base_offset, long long last_offset, long long max_timestamp_ms) except -1
    cpdef note(
        self, long long position, long long size, long long base_offset, long long last_offset, long long max_timestamp_ms
    )
    @cython.locals(boundaries="long long *", at=Py_ssize_t)
    cdef _note_boundary(self, long long base_offset, long long position)
    @cython.locals(boundaries="long long *", at=Py_ssize_t, position="long long")
    cpdef long long known_position(self, long long base_offset) except -2
    cdef _add_entries(self, long long last_offset, long long position)
    cpdef bint wants_room(self, long long max_index_bytes) except -1
    cpdef bint is_index_full(self, long long max_index_bytes) except -1
