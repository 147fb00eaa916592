# C types of in_flight.py.

cimport cython


cdef class ResponseHandler:
    cpdef bint handle(self, frame) except -1
    cpdef run_deferred(self, bint is_direct)


@cython.final
cdef class InFlightRequest:
    cdef readonly long long correlation_id
    cdef readonly object api_key
    cdef readonly long long timeout_ms
    cdef readonly double deadline_ms
    cdef readonly object handler


@cython.final
cdef class InFlight:
    cdef object _waiting
    cdef long long _last_id

    cpdef long long next_id(self)
    cpdef add(self, InFlightRequest waiting)
    @cython.locals(correlation_id="long long", oldest=InFlightRequest)
    cpdef InFlightRequest match(self, frame)
