# C types of fetch_session.py.

cimport cython


@cython.final
cdef class FetchSessionHandler:
    cdef readonly long long session_id
    cdef readonly long long epoch
    cdef dict _partitions
    cdef dict _new_offsets

    cpdef update_offset(self, partition, fetch_offset)
    cpdef on_response(self, long long session_id)
