# C types of in_flight.py.

cimport cython


cdef class ResponseHandler:
    cpdef bint take(self, frame) except -1
    cpdef go_on(self, bint is_on_loan)


@cython.final
cdef class Waiting:
    cdef readonly long long correlation_id
    cdef readonly object api_key
    cdef readonly long long timeout_ms
    cdef readonly double deadline_ms
    cdef readonly object answer


@cython.final
cdef class InFlight:
    cdef object _waiting
    cdef long long _last_id

    cpdef long long next_id(self)
    cpdef add(self, Waiting waiting)
    @cython.locals(correlation_id="long long", oldest=Waiting)
    cpdef Waiting answered(self, frame)
