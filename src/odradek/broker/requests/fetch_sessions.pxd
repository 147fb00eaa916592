# C types of fetch_sessions.py.

cimport cython


@cython.final
cdef class WantedPartition:
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef readonly long long partition
    cdef public object asked
    cdef readonly bint is_told
    cdef readonly long long high_watermark
    cdef readonly long long last_stable_offset
    cdef readonly long long log_start_offset

    cpdef bint has_news(self, row) except -1
    @cython.locals(
        moved=bint, high_watermark="long long", last_stable_offset="long long", log_start_offset="long long"
    )
    cpdef bint has_moved(self, row) except -1


@cython.final
cdef class FetchSession:
    cdef readonly long long session_id
    cdef public long long epoch
    cdef readonly bint uses_topic_ids
    cdef public long long last_used_ms
    cdef public dict wanted

    cpdef go_on(self, long long now_ms)
    cpdef move_to_end(self, keys)
