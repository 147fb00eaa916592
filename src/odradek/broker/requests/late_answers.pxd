# C types of late_answers.py.

from odradek.broker.requests.purgatory cimport Waiter
from odradek.metrics.counters cimport RequestCounters
from odradek.net.exchange cimport Exchange


cdef class LateAnswer(Waiter):
    cdef readonly Exchange exchange
    cdef readonly RequestCounters counters
    cdef readonly double started

    cpdef wait_for(self, connection, Exchange exchange, RequestCounters counters, double started)
    cpdef park(self)
    cpdef bint complete(self, bint is_over) except -1
    cdef bint _complete_safely(self, bint is_over) except -1
    cpdef answer(self, parts)
