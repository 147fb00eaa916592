# C types of progress.py.

cimport cython

from odradek.broker.requests.purgatory cimport Purgatory
from odradek.replication.partition cimport Partition


@cython.final
cdef class PartitionListener:
    cdef Purgatory _waiting_fetches
    cdef Purgatory _waiting_produces
    cdef dict _watched_by_fetches
    cdef dict _watched_by_produces
    cdef dict _leaderships
    cdef object _flush_soon

    cpdef hear(self, Partition partition)
