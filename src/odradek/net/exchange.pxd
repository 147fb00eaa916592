# C types of exchange.py.

cimport cython


@cython.final
@cython.freelist(8)
cdef class Exchange:
    cdef ExchangeQueue _queue
    cdef object _parts
    cdef Exchange _next

    cpdef answer(self, parts)


@cython.final
cdef class ExchangeQueue:
    cdef Exchange _first
    cdef Exchange _last
    cdef object _send
    cdef readonly Py_ssize_t count

    @cython.locals(exchange=Exchange, last=Exchange)
    cpdef Exchange begin(self)
    @cython.locals(first=Exchange)
    cpdef advance(self)
