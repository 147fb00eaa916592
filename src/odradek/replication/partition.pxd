# C types of partition.py.

cimport cython

from odradek.log.partition.log_appender cimport AppendInfo, LogAppender
from odradek.metrics.counters cimport TopicTraffic


@cython.final
cdef class Partition:
    cdef readonly object topic_partition
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef readonly long long broker_id
    cdef public LogAppender log
    cdef public object on_progress
    cdef readonly TopicTraffic traffic
    cdef public object state
    cdef readonly long long leader_epoch
    cdef readonly bint leads_alone
    cdef readonly bint awaits_flush
    cdef dict _end_offsets

    cpdef append(self, records, long long required_acks, long long now_ms, origin=*)
    @cython.locals(info=AppendInfo)
    cpdef AppendInfo append_alone(self, records, long long now_ms)
    cdef _appended(self, AppendInfo info, Py_ssize_t size)
    cdef _require_appendable(self, long long required_acks)
    cpdef bint may_acknowledge(self, long long last_offset, long long required_acks) except -1
    @cython.locals(log=LogAppender, end_offset="long long")
    cdef _advance(self)
