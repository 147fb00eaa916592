# C types of progress.py.

cimport cython


@cython.final
cdef class Progress:
    cdef object _waiting_fetches
    cdef object _waiting_produces
    cdef dict _watched_by_fetches
    cdef dict _watched_by_produces
    cdef dict _leaderships
