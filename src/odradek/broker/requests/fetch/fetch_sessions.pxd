# C types of fetch_sessions.py.

cimport cython

from odradek.replication.partition cimport Partition

cdef long long _FINAL_EPOCH, _INITIAL_EPOCH, _MAX_EPOCH


@cython.final
@cython.freelist(8)
cdef class FetchPartition:
    cdef readonly str topic
    cdef readonly bytes topic_id
    cdef readonly long long partition
    cdef readonly long long current_leader_epoch
    cdef readonly long long fetch_offset
    cdef readonly long long last_fetched_epoch
    cdef readonly long long follower_start_offset
    cdef readonly long long max_bytes
    cdef public Partition replica
    cdef readonly bint was_returned
    cdef readonly long long high_watermark
    cdef readonly long long last_stable_offset
    cdef readonly long long log_start_offset

    cpdef ask(self, asked)
    @cython.locals(
        has_changed=bint, has_error=bint, high_watermark="long long", last_stable_offset="long long",
        log_start_offset="long long",
    )
    cpdef bint has_changed(self, row) except -1


@cython.final
cdef class FetchSession:
    cdef readonly long long session_id
    cdef public long long epoch
    cdef readonly bint uses_topic_ids
    cdef public long long last_used_ms
    cdef public dict wanted

    cpdef go_on(self, long long now_ms)
    @cython.locals(uses_topic_ids=bint, wanted=dict, known=FetchPartition)
    cpdef update(self, request)
    @cython.locals(wanted=dict)
    cpdef move_to_end(self, keys)


@cython.final
cdef class FetchSessions:
    cdef public long long max_sessions
    cdef dict _sessions

    cpdef get(self, session_id)
    @cython.locals(session=FetchSession, epoch="long long")
    cpdef tuple resolve(self, request, bint uses_topic_ids, long long now_ms)
    @cython.locals(session=FetchSession)
    cdef FetchSession _begin(self, request, bint uses_topic_ids, long long now_ms)
