# C types of follower_batches.py.

cimport cython

from odradek.log.partition.log_batch cimport LogBatch

cdef long long _LOG_OVERHEAD, _HEADER_SIZE, _MAGIC_POSITION, _MAGIC, _CRC_POSITION, _CRC_BEGINS, _CONTROL_FLAG
cdef long long _LAST_OFFSET


@cython.final
cdef class FollowerBatches:
    cdef readonly object payload
    cdef readonly list batches
    cdef readonly long long max_timestamp_ms
    cdef readonly bint has_markers

    @cython.locals(batch=LogBatch)
    cpdef list new_epochs(self, long long latest)


@cython.locals(
    raw="const unsigned char *", size="long long", position="long long", max_timestamp_ms="long long",
    has_markers=bint, batches=list, length="long long", base_offset="long long", last_offset_delta="long long",
    computed="long long", time_ms="long long",
)
cpdef FollowerBatches whole_batches(records, long long log_end_offset)
