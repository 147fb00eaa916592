# C types of short_ways.py.

cimport cython

from odradek.net.exchange cimport Exchange


@cython.final
cdef class ShortWays:
    cdef object _services
    cdef dict _ways

    @cython.locals(started=double)
    cpdef bint try_answer(self, connection, frame, Exchange exchange) except -1
