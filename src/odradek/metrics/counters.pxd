# C types of counters.py.

cimport cython


@cython.final
cdef class RequestCounters:
    cdef public long long requests
    cdef public long long errors
    cdef public long long request_bytes
    cdef public long long response_bytes
    cdef public double seconds


@cython.final
cdef class TopicTraffic:
    cdef public long long bytes_in
    cdef public long long messages_in
    cdef public long long bytes_out
