# C types of producer_states.py.

cimport cython


@cython.final
cdef class ProducerStates:
    cdef public dict entries
    cdef public dict ongoing
    cdef public dict unreplicated
    cdef public dict verifying
    cdef public long long end_offset
