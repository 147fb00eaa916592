# C types of exchange.py.

cimport cython


@cython.final
cdef class Exchange:
    cdef ExchangeQueue _queue
    cdef object _parts

    cpdef answer(self, parts)


@cython.final
cdef class ExchangeQueue:
    cdef object _open
    cdef object _send

    cpdef Exchange begin(self)
    @cython.locals(first=Exchange)
    cpdef advance(self)
