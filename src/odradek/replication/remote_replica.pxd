# C types of remote_replica.py.

cimport cython


@cython.final
cdef class RemoteReplica:
    cdef readonly long long broker_id
    cdef readonly long long end_offset
    cdef readonly long long log_start_offset
    cdef readonly long long broker_epoch
    cdef readonly long long last_caught_up_ms
    cdef readonly long long last_fetch_ms
    cdef readonly long long leader_end_offset

    cpdef on_fetch(
        self,
        long long fetch_offset,
        long long log_start_offset,
        long long leader_end_offset,
        long long now_ms,
        long long broker_epoch,
    )
    cpdef bint is_caught_up(self, long long leader_end_offset, long long now_ms, long long max_lag_ms) except -1
    cpdef bint may_join_isr(self, long long high_watermark, long long epoch_start_offset) except -1
