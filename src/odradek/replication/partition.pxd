# C types of partition.py.

cimport cython

from odradek.log.partition.log_appender cimport AppendInfo, LogAppender
from odradek.metrics.counters cimport TopicTraffic
from odradek.replication.remote_replica cimport RemoteReplica


cdef int _ANYTHING, _APPENDED, _COMMITTED


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
    cdef readonly long long led_since
    cdef readonly tuple isr
    cdef readonly bint is_leader
    cdef readonly bint is_sole_replica
    cdef readonly bint awaits_flush
    cdef readonly bint is_suspended
    cdef readonly long long epoch_start_offset
    cdef readonly dict followers
    cdef readonly object isr_port
    cdef readonly object pending
    cdef readonly int progress
    cdef readonly long long sure_in_sync
    cdef list _in_sync_followers
    cdef list _candidates
    cdef long long _now_ms
    cdef long long _next_lag_check_ms

    @cython.locals(leader_epoch="long long")
    cpdef require_leader(self, long long client_leader_epoch=*)
    @cython.locals(info=AppendInfo)
    cpdef AppendInfo append(self, records, long long required_acks, long long now_ms, origin=*, long long transaction_version=*)
    cdef _require_appendable(self, long long required_acks)
    cdef _report(self, int progress)
    cpdef require_epoch(self, long long client_leader_epoch)
    @cython.locals(follower=RemoteReplica, has_moved=bint, has_deleted=bint)
    cpdef record_follower_fetch(
        self,
        long long replica_id,
        long long fetch_offset,
        long long log_start_offset=*,
        long long now_ms=*,
        long long broker_epoch=*,
    )
    cpdef require_replica(self, long long replica_id, long long client_leader_epoch)
    cpdef bint is_committed(self, long long last_offset) except -1
    cpdef bint is_flushed(self, long long last_offset) except -1
    cpdef on_flushed(self)
    cpdef bint has_enough_in_sync(self) except -1
    @cython.locals(wanted="long long", count="long long")
    cdef Py_ssize_t _min_in_sync(self) except -1
    @cython.locals(
        log=LogAppender, end_offset="long long", current="long long", moved="long long", waits_for=list
    )
    cdef bint _advance(self) except -1
