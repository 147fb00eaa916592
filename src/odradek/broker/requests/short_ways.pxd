# C types of short_ways.py.

cimport cython

from odradek.broker.requests.late_answers cimport LateAnswer
from odradek.metrics.counters cimport RequestCounters
from odradek.net.exchange cimport Exchange


@cython.final
cdef class ShortWays:
    cdef object _services
    cdef object _long_way
    cdef dict _ways

    cpdef handle(self, connection, frame, Exchange exchange)
    @cython.locals(started=double, counters=RequestCounters, found=tuple)
    cdef bint _try_answer(self, connection, frame, Exchange exchange) except -1
