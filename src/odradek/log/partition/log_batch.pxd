# C types of log_batch.py.

cimport cython


@cython.final
@cython.freelist(8)
cdef class LogBatch:
    cdef readonly long long base_offset
    cdef readonly long long last_offset
    cdef readonly long long size
    cdef readonly long long max_timestamp_ms
    cdef readonly long long leader_epoch
    cdef readonly object header
    cdef readonly object marker
