# C types of dispatch.py.

cimport cython

from odradek.broker.requests.context cimport RequestContext, RequestVersion
from odradek.metrics.counters cimport RequestCounters
from odradek.net.exchange cimport Exchange

cdef Py_ssize_t _SHORTEST


@cython.final
cdef class Route:
    cdef readonly object entry
    cdef readonly object function
    cdef readonly tuple cluster_operations
    cdef readonly RequestVersion request_version
    cdef readonly RequestCounters counters
    cdef readonly bint is_control


@cython.final
cdef class Dispatcher:
    cdef object _services
    cdef str _listener
    cdef object _served
    cdef object _loop
    cdef set _tasks
    cdef dict _routes
    cdef readonly dict counters

    @cython.locals(route=Route, context=RequestContext, raw="const unsigned char *", api_key="long long", version="long long")
    cpdef handle(self, connection, frame, Exchange exchange)
    cdef _run(self, Route route, RequestContext context, request, Py_ssize_t size)
