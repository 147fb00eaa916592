# C types of offset_index.py.

cimport cython

from odradek.log.segment.sparse_index cimport SparseIndex

cdef long long _ENTRY_SIZE


@cython.final
cdef class OffsetPosition:
    cdef readonly long long offset
    cdef readonly long long position


@cython.final
cdef class OffsetIndex:
    cdef readonly long long base_offset
    cdef SparseIndex _rows

    cpdef append(self, long long offset, long long position)
    cpdef OffsetPosition lookup(self, long long offset)
    cpdef OffsetPosition lookup_position(self, long long position)
    cpdef bint is_full(self, long long max_bytes) except -1
    cdef OffsetPosition _at(self, Py_ssize_t number)
