# C types of time_index.py.

cimport cython

from odradek.log.segment.sparse_index cimport SparseIndex

cdef long long _ENTRY_SIZE


@cython.final
cdef class TimeIndex:
    cdef readonly long long base_offset
    cdef SparseIndex _rows

    cpdef append_if_later(self, long long timestamp_ms, long long offset)
    cpdef bint is_full(self, long long max_bytes) except -1
