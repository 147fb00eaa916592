# C types of inbox.py.

cimport cython

from odradek.client.network.direct_read cimport DirectRead


@cython.final
cdef class FetchBuffer:
    cdef readonly object fetched
    cdef readonly object errors
    cdef readonly object calls
    cdef public object fatal
    cdef public object on_news
    cdef DirectRead _loan
    cdef object _lock
    cdef object _waiting

    cpdef put(self, fetched)
    cpdef problem(self)
    cpdef bint has_demands(self) except -1
    cpdef lend(self, connection)
    @cython.locals(loan=DirectRead)
    cpdef wait(self, double timeout_s)
    cdef _wait_on_loan(self, DirectRead loan, double timeout_s)
    @cython.locals(loan=DirectRead)
    cpdef bint catch_up(self) except -1
    cdef keep(self, fetched)
