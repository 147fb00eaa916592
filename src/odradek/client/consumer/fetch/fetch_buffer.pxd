# C types of fetch_buffer.py.

cimport cython

from odradek.client.network.direct_read cimport DirectRead


@cython.final
cdef class FetchBuffer:
    cdef readonly object fetched
    cdef readonly object errors
    cdef readonly object calls
    cdef public object fatal
    cdef public object on_change
    cdef DirectRead _direct_read
    cdef object _lock
    cdef object _waiting

    cpdef put(self, fetched)
    cpdef problem(self)
    cpdef bint has_demands(self) except -1
    cpdef start_direct_read(self, connection)
    @cython.locals(direct_read=DirectRead)
    cpdef wait(self, double timeout_s)
    cdef _wait_directly(self, DirectRead direct_read, double timeout_s)
    @cython.locals(direct_read=DirectRead)
    cpdef bint read_available(self) except -1
    cdef keep(self, fetched)
