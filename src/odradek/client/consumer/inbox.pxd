# C types of inbox.py.

cimport cython


@cython.final
cdef class Inbox:
    cdef readonly object fetched
    cdef readonly object errors
    cdef readonly object calls
    cdef public object fatal
    cdef public object on_news
    cdef object _lock
    cdef object _waiting

    cpdef put(self, fetched)
    cpdef problem(self)
