# C types of steady_way.py.

cimport cython

from odradek.client.connection cimport BrokerConnection
from odradek.client.consumer.fetched cimport Fetched
from odradek.protocol.fetch_template cimport FetchTemplate, PlainFetchAnswer, read_plain_fetch


@cython.final
cdef class FetchOnItsWay:
    cdef object _fetcher
    cdef readonly object node_id
    cdef readonly long long version
    cdef readonly BrokerConnection connection
    cdef readonly object session
    cdef readonly dict expected
    cdef bint _is_steady
    cdef long long _changes
    cdef long long _edition
    cdef dict _templates

    @cython.locals(answer=PlainFetchAnswer, template=FetchTemplate, fetched=Fetched)
    cdef bint _take(self, frame) except -1
    cdef _find(self, bytes name)
    cdef _ask_again(self, partition, state, FetchTemplate template)
