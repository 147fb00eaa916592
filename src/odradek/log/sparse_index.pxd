# C types of sparse_index.py.

cimport cython


@cython.final
cdef class SparseIndex:
    cdef readonly object file
    cdef readonly Py_ssize_t count
    cdef object _entry
    cdef tuple _pending
    cdef object _last
    cdef tuple _blocks_read

    cpdef append(self, long long key, long long value)
    cpdef last_row(self)
