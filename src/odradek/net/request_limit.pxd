# C types of request_limit.py.

cimport cython


@cython.final
cdef class RequestLimit:
    cdef public long long max_requests
    cdef public long long max_bytes
    cdef public long long open_requests
    cdef public long long open_bytes
    cdef public bint is_full
    cdef readonly dict _stalled
