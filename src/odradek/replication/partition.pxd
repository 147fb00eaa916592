# C types of partition.py.

cimport cython

from odradek.log.log_tail cimport LogTail


@cython.final
cdef class Partition:
    cdef readonly object topic_partition
    cdef readonly bytes topic_id
    cdef readonly long long broker_id
    cdef public LogTail log
    cdef public object on_progress
    cdef readonly object traffic
    cdef public object state
    cdef readonly bint leads_alone
    cdef dict _end_offsets

    cpdef append(self, records, long long required_acks, long long now_ms, origin=*)
    cdef _require_appendable(self, long long required_acks)
    cdef _advance(self)
