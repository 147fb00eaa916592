# C types of page_cache_state.py.

cimport cython


@cython.final
cdef class CachedRange:
    cdef readonly long long start_offset
    cdef readonly long long last_offset
    cdef readonly long long end_offset
    cdef readonly long long max_bytes
    cdef readonly long long ahead_bytes

    cpdef bint covers(self, long long offset, long long max_bytes) except -1


@cython.final
cdef class LogEndMark:
    cdef readonly long long segment_base_offset
    cdef readonly long long segment_size
    cdef readonly long long offset


@cython.final
cdef class PageCacheState:
    cdef long long _tail_offset
    cdef LogEndMark _mark
    cdef public CachedRange run

    @cython.locals(mark=LogEndMark, run=CachedRange, is_same_segment=bint)
    cpdef bint covers(self, long long offset, long long max_bytes, LogEndMark end) except -1
    @cython.locals(mark=LogEndMark, is_recent=bint, grown_bytes="long long")
    cdef _move_mark(self, LogEndMark end)
