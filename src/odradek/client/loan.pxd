# C types of loan.py.

cimport cython

from odradek.client.answers cimport AnswerAssembler
from odradek.client.in_flight cimport Taker

cdef double _LONGEST_WAIT_MS


cdef class Lender:
    cpdef hand_over(self, frame)


@cython.final
cdef class Loan:
    cdef readonly bint is_lent
    cdef readonly long long answers
    cdef readonly object waiting
    cdef public Taker put_off
    cdef Lender _lender
    cdef object _next_look
    cdef object _loop
    cdef object _transport
    cdef AnswerAssembler _assembler
    cdef object _reading
    cdef int _descriptor
    cdef int _bell
    cdef int _bell_rope

    cpdef release(self)
    @cython.locals(timeout_ms=double, ready=int)
    cpdef wait(self, double timeout_s)
    cpdef catch_up(self)
    cdef _silence(self)
    @cython.locals(taker=Taker)
    cdef _go_on(self, bint is_on_loan)
    @cython.locals(lender=Lender, count=Py_ssize_t)
    cdef _read(self)
