# C types of context.py.

cimport cython

from odradek.metrics.counters cimport RequestCounters
from odradek.net.exchange cimport Exchange


@cython.final
cdef class RequestVersion:
    cdef readonly object api_key
    cdef readonly long long version
    cdef readonly object header_plan
    cdef readonly object request_plan
    cdef readonly object response_header_plan
    cdef readonly object response_plan


@cython.final
cdef class RequestContext:
    cdef readonly object services
    cdef readonly str listener
    cdef readonly object connection
    cdef readonly Exchange exchange
    cdef readonly RequestVersion request_version
    cdef readonly object api_key
    cdef readonly long long version
    cdef readonly object correlation_id
    cdef readonly object client_id
    cdef readonly RequestCounters counters
    cdef readonly double started

    cpdef answer(self, response)
    cpdef answer_nothing(self)
    cpdef bint is_allowed(self, operation, resource) except -1
