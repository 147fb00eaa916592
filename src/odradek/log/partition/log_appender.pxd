# C types of log_appender.py.

cimport cython

from odradek.log.partition.log_batch cimport LogBatch
from odradek.log.producers.producer_states cimport ProducerStates
from odradek.log.segment.segment_appender cimport SegmentAppender
from odradek.log.segment.segments cimport Segments
from odradek.records.fast_validation cimport ValidBatch

cdef Py_ssize_t _LOG_OVERHEAD
cdef long long _CODEC_MASK


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
    cdef readonly long long leader_epoch
    cdef readonly long long codec
    cdef readonly bint keeps_times
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
    cdef public object partition
    cdef public object directory
    cdef public object config
    cdef public Segments segments
    cdef public object epochs
    cdef public ProducerStates producers
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long recovery_point
    cdef public long long _hw
    cdef public AppendLimits limits

    @cython.locals(producers=ProducerStates)
    cpdef long long stable_offset(self) except -1
    cpdef bint awaits_flush(self) except -1
    cpdef commit_to(self, long long offset)
    cpdef long long update_high_watermark(self, long long offset) except -1
    cpdef AppendInfo append_as_leader(
        self, records, long long leader_epoch, long long now_ms, origin=*, long long transaction_version=*
    )
    @cython.locals(
        limits=AppendLimits, batch=ValidBatch, max_timestamp_ms="long long", log_append_time_ms="long long",
        base_offset="long long", last_offset="long long", size="long long", raw="unsigned char *", batches=list,
    )
    cdef AppendInfo _append_from_client(self, view, long long leader_epoch, long long now_ms)
    @cython.locals(batch=ValidBatch)
    cdef ValidBatch _validate(self, view, AppendLimits limits, long long now_ms)
    cdef AppendLimits _current_limits(self)
    @cython.locals(limits=AppendLimits)
    cdef AppendLimits _limits_for(self, SegmentAppender segment)
    @cython.locals(last=LogBatch, size="long long", segment=SegmentAppender, limits=AppendLimits)
    cpdef _append(self, payload, list batches, long long max_timestamp_ms, long long now_ms)
    @cython.locals(position="long long", batch=LogBatch)
    cdef _write(self, SegmentAppender segment, payload, list batches, long long now_ms)
