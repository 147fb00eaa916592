# C types of connection.py.

cimport cython

from odradek.client.network.responses cimport ResponseAssembler
from odradek.client.network.in_flight cimport InFlight, InFlightRequest
from odradek.client.network.direct_read cimport DirectReadOwner, DirectRead
from odradek.protocol.produce_template cimport ProduceTemplate


@cython.final
cdef class BrokerConnection(DirectReadOwner):
    cdef readonly str address
    cdef readonly object client_id
    cdef public object versions
    cdef public double last_used_ms
    cdef long long _request_timeout_ms
    cdef bint _allows_direct_read
    cdef ResponseAssembler _assembler
    cdef InFlight _in_flight
    cdef object _loop
    cdef object _transport
    cdef object _deadline_timer
    cdef object _ended
    cdef object _closed
    cdef dict _after_responses
    cdef object _sending
    cdef object _descriptor
    cdef readonly DirectRead direct_read

    @cython.locals(correlation_id="long long", request=bytes)
    cpdef bint send_if_idle(self, handler, ProduceTemplate template, batch) except -1
    @cython.locals(correlation_id="long long")
    cdef long long _number(self, bytearray request) except *
    @cython.locals(deadline_ms=double, sent=Py_ssize_t)
    cdef _add_and_write(self, long long correlation_id, api_key, long long timeout_ms, handler, request)
    cpdef send_directly(self, handler, api_key, bytearray request, long long timeout_ms)
    cdef bint _is_idle(self, Py_ssize_t most_in_flight) except -1
    @cython.locals(waiting=InFlightRequest)
    cpdef buffer_updated(self, Py_ssize_t nbytes)
    cpdef get_buffer(self, sizehint)
