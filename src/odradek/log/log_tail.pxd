# C types of log_tail.py.

cimport cython

from odradek.log.segment_end cimport SegmentEnd

cdef Py_ssize_t _LAST_OFFSET_DELTA, _MAX_TIMESTAMP_MS, _PRODUCER_ID


@cython.final
cdef class Terms:
    cdef readonly object config
    cdef readonly object segment
    cdef readonly object epochs
    cdef readonly bint was_empty
    cdef readonly bint is_ordinary
    cdef readonly long long leader_epoch
    cdef readonly long long max_message_bytes
    cdef readonly long long max_decompressed_bytes
    cdef readonly long long max_index_bytes
    cdef readonly bint requires_key
    cdef readonly long long before_max_ms
    cdef readonly long long after_max_ms
    cdef readonly long long max_size
    cdef readonly long long max_timestamp_ms
    cdef readonly long long max_offset


cdef class LogTail:
    cdef public object directory
    cdef public object config
    cdef public object segments
    cdef public object epochs
    cdef public object producers
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long _hw
    cdef public Terms terms

    cpdef commit_all(self)
    cpdef append_from_client(self, records, long long leader_epoch, long long now_ms)
    @cython.locals(
        segment=SegmentEnd, terms=Terms, size="long long", fields=tuple, max_timestamp_ms="long long",
        base_offset="long long", last_offset="long long",
    )
    cpdef append_shortly(self, records, long long leader_epoch, long long now_ms)
    @cython.locals(terms=Terms)
    cdef Terms _terms_for(self, segment)
