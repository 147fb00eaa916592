# C types of progress.py.

cimport cython

from odradek.broker.requests.purgatory cimport CommitPurgatory, Purgatory
from odradek.replication.partition cimport Partition


@cython.final
cdef class PartitionListener:
    cdef Purgatory _waiting_fetches
    cdef CommitPurgatory _waiting_produces
    cdef CommitPurgatory _waiting_flushes
    cdef dict _watched_by_fetches
    cdef dict _watched_by_produces
    cdef dict _watched_by_flushes
    cdef dict _leaderships
    cdef object _flush_soon

    cpdef on_append(self, Partition partition)
