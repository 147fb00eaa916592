# C types of file_system.py.

cimport cython


@cython.final
cdef class OpenFile:
    cdef readonly int fd


@cython.final
cdef class FileRange:
    cdef readonly OpenFile file
    cdef readonly long long position
    cdef readonly long long length


cdef class FileSystem:
    cpdef bytes read_at(self, OpenFile file, Py_ssize_t length, long long position)
    @cython.locals(written=Py_ssize_t)
    cpdef write_at(self, OpenFile file, payload, Py_ssize_t position, Py_ssize_t zeroes=*)
