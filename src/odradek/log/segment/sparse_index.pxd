# C types of sparse_index.py.

cimport cython
from cpython.array cimport array as c_array


@cython.final
cdef class SparseIndex:
    cdef readonly object file
    cdef readonly Py_ssize_t count
    cdef object _entry
    cdef tuple _pending
    cdef bint _is_last_known
    cdef long long _last_key
    cdef tuple _blocks_read

    @cython.locals(keys=c_array, values=c_array)
    cpdef append(self, long long key, long long value)
    cpdef long long last_key(self) except *
    cpdef tuple row(self, Py_ssize_t number)
    @cython.locals(found=Py_ssize_t)
    cpdef Py_ssize_t search(self, int column, long long target) except -2
    @cython.locals(found=Py_ssize_t)
    cdef Py_ssize_t _search_file(self, int column, long long target, Py_ssize_t count) except -2


@cython.locals(start=Py_ssize_t, size=Py_ssize_t, found=Py_ssize_t)
cdef Py_ssize_t _search_block(tuple block, int column, long long target, Py_ssize_t count) except -2

cdef _column(tuple block, int column)
