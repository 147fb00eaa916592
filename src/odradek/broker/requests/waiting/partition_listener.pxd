# C types of partition_listener.py.

cimport cython

from odradek.broker.requests.waiting.purgatory cimport CommitPurgatory, Purgatory
from odradek.replication.partition cimport Partition


cdef int _APPENDED, _COMMITTED


@cython.final
cdef class PartitionListener:
    cdef Purgatory _waiting_fetches
    cdef Purgatory _waiting_followers
    cdef Purgatory _waiting_deletes
    cdef CommitPurgatory _waiting_produces
    cdef CommitPurgatory _waiting_flushes
    cdef dict _watched_by_fetches
    cdef dict _watched_by_followers
    cdef dict _watched_by_deletes
    cdef dict _watched_by_produces
    cdef dict _watched_by_flushes
    cdef dict _leaderships
    cdef object _flush_soon

    @cython.locals(progress=int)
    cpdef on_append(self, Partition partition)
