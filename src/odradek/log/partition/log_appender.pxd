# C types of log_appender.py.

cimport cython

from odradek.log.producers.producer_states cimport ProducerStates
from odradek.log.segment.segment_appender cimport SegmentAppender
from odradek.log.segment.segments cimport Segments
from odradek.records.fast_validation cimport AcceptedBatch

cdef Py_ssize_t _LOG_OVERHEAD


@cython.final
@cython.freelist(8)
cdef class AppendInfo:
    cdef readonly long long base_offset
    cdef readonly long long last_offset
    cdef readonly long long log_append_time_ms
    cdef readonly long long log_start_offset
    cdef readonly bint is_duplicate
    cdef readonly object roll_reason


@cython.final
cdef class AppendLimits:
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


cdef class LogAppender:
    cdef public object directory
    cdef public object config
    cdef public Segments segments
    cdef public object epochs
    cdef public ProducerStates producers
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long recovery_point
    cdef public long long _hw
    cdef public AppendLimits terms

    cpdef bint awaits_flush(self) except -1
    cpdef commit_to(self, long long offset)
    @cython.locals(info=AppendInfo)
    cpdef AppendInfo append_from_client(self, records, long long leader_epoch, long long now_ms)
    @cython.locals(
        segment=SegmentAppender, terms=AppendLimits, size="long long", accepted=AcceptedBatch, max_timestamp_ms="long long",
        base_offset="long long", last_offset="long long", octets="unsigned char *",
    )
    cpdef AppendInfo append_shortly(self, records, long long leader_epoch, long long now_ms)
    @cython.locals(terms=AppendLimits)
    cdef AppendLimits _terms_for(self, segment)
