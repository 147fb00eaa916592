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
    cdef readonly object state
    cdef readonly long long leader_epoch
    cdef readonly tuple isr
    cdef readonly bint is_leader
    cdef readonly bint is_sole_replica
    cdef readonly bint awaits_flush
    cdef readonly bint is_suspended
    cdef readonly dict end_offsets

    @cython.locals(leader_epoch="long long")
    cpdef require_leader(self, long long client_leader_epoch=*)
    @cython.locals(info=AppendInfo)
    cpdef AppendInfo append(self, records, long long required_acks, long long now_ms, origin=*)
    cdef _require_appendable(self, long long required_acks)
    cpdef record_follower_fetch(self, long long replica_id, long long fetch_offset)
    cpdef require_replica(self, long long replica_id, long long client_leader_epoch)
    cpdef bint is_committed(self, long long last_offset) except -1
    cpdef bint is_flushed(self, long long last_offset) except -1
    cpdef on_flushed(self)
    cpdef bint has_enough_in_sync(self) except -1
    cdef Py_ssize_t _min_in_sync(self) except -1
    @cython.locals(log=LogAppender, end_offset="long long", current="long long", moved="long long")
    cdef bint _advance(self) except -1
