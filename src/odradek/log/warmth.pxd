# C types of warmth.py.

cimport cython


@cython.final
cdef class Warmth:
    cdef long long _hot_from
    cdef object _mark
    cdef public object run

    @cython.locals(is_same_segment=bint)
    cpdef bint covers(self, long long offset, long long max_bytes, end) except -1
    @cython.locals(is_recent=bint, grown_bytes="long long")
    cdef _move_mark(self, end)
