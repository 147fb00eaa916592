# C types of repeat_fetch.py.

cimport cython

from odradek.client.network.connection cimport BrokerConnection
from odradek.client.consumer.fetch.fetch_session cimport FetchSessionHandler
from odradek.client.consumer.fetch.fetched cimport Fetched
from odradek.client.consumer.fetch.fetch_buffer cimport FetchBuffer
from odradek.client.network.in_flight cimport ResponseHandler
from odradek.protocol.fetch_template cimport FetchTemplate, PlainFetchAnswer, read_plain_fetch


@cython.final
cdef class ExpectedPartition:
    cdef readonly object state
    cdef readonly long long generation
    cdef readonly long long offset


@cython.final
cdef class InFlightFetch(ResponseHandler):
    cdef object _fetcher
    cdef FetchBuffer _fetch_buffer
    cdef long long _awaited_in_a_row
    cdef object _partition
    cdef object _metadata
    cdef bint _checks_crc
    cdef FetchTemplate _template
    cdef long long _timeout_ms
    cdef readonly object node_id
    cdef readonly long long version
    cdef readonly BrokerConnection connection
    cdef readonly FetchSessionHandler session
    cdef readonly dict expected
    cdef bint _is_repeatable
    cdef long long _changes
    cdef long long _edition
    cdef dict _templates

    @cython.locals(response=PlainFetchAnswer, template=FetchTemplate, fetched=Fetched, session=FetchSessionHandler, one=ExpectedPartition)
    cdef bint _handle(self, frame, bint is_direct) except -1
    cdef bint _is_changed(self) except -1
    cdef _find(self, bytes name)
    cdef _call_fetcher(self, step, bint is_direct)
