# C types of file_parts.py.

cimport cython


@cython.final
cdef class LogPart:
    cdef object _range
    cdef Py_ssize_t _length
