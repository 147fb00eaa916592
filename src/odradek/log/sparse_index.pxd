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
