# C types of loan.py.

cimport cython

from odradek.client.network.responses cimport ResponseAssembler
from odradek.client.network.in_flight cimport ResponseHandler

cdef double _LONGEST_WAIT_MS


cdef class DirectReadOwner:
    cpdef hand_over(self, frame)


@cython.final
cdef class DirectRead:
    cdef readonly bint is_lent
    cdef readonly long long answers
    cdef readonly object waiting
    cdef public ResponseHandler put_off
    cdef DirectReadOwner _lender
    cdef object _next_look
    cdef object _loop
    cdef object _transport
    cdef ResponseAssembler _assembler
    cdef object _reading
    cdef int _descriptor
    cdef int _bell
    cdef int _bell_rope

    cpdef release(self)
    @cython.locals(timeout_ms=double, ready=int)
    cpdef wait(self, double timeout_s)
    cpdef catch_up(self)
    cdef _silence(self)
    @cython.locals(taker=ResponseHandler)
    cdef _go_on(self, bint is_on_loan)
    @cython.locals(lender=DirectReadOwner, count=Py_ssize_t)
    cdef _read(self)
