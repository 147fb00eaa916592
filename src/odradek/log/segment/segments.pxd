# C types of segments.py.

cimport cython


@cython.final
cdef class Segments:
    cdef readonly tuple _sorted
    cdef readonly object active

    @cython.locals(base_offsets=list, segments=list, at=Py_ssize_t)
    cpdef floor(self, long long offset)
    @cython.locals(base_offsets=list, segments=list, at=Py_ssize_t)
    cpdef after(self, segment)
