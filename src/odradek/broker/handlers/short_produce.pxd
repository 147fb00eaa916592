# C types of short_produce.py.

cimport cython

from odradek.replication.partition cimport Partition

@cython.locals(partition=Partition, appends=list)
cpdef answer_shortly(services, frame)

@cython.locals(partition=Partition, outcomes=list, has_errors=bint)
cdef _append_all(services, request, list appends)
