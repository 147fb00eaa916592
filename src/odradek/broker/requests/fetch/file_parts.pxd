# C types of file_parts.py.

cimport cython

from odradek.log.files.file_system cimport FileRange


@cython.final
cdef class LogPart:
    cdef FileRange _range
    cdef Py_ssize_t _length

    @cython.locals(run=FileRange, sent=Py_ssize_t)
    cpdef Py_ssize_t send_to(self, int socket_fd, long long start) except -1
