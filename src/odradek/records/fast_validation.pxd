# C types of acceptance.py.

cimport cython

cdef long long _CRC_BEGINS, _CRC_POSITION, _MAGIC_POSITION, _CODEC_MASK, _UNKNOWN_ATTRIBUTES, _HEADER_SIZE
cdef long long _LOG_OVERHEAD, _MAGIC, _NO_TIMESTAMP, _ENDLESS_MS, _LZ4
cdef list _free_scratch
cdef int _FOUND_LEAST, _FOUND_GREATEST


@cython.final
@cython.freelist(4)
cdef class AcceptedBatch:
    cdef readonly long long last_offset_delta
    cdef readonly long long max_timestamp_ms
    cdef readonly long long producer_id


@cython.locals(
    octets="const unsigned char *", size="long long", attributes="long long", last_delta="long long",
    base_ms="long long", max_ms="long long", producer_id="long long", count="long long",
    untimed_delta_ms="long long", codec="long long", problem=Py_ssize_t, row="long long[16]",
)
cpdef AcceptedBatch accept(
    view,
    long long max_message_bytes,
    long long max_decompressed_bytes,
    bint requires_key,
    long long earliest_ms,
    long long latest_ms,
)

@cython.locals(size=Py_ssize_t, problem=Py_ssize_t)
cdef Py_ssize_t _check_compressed(
    view,
    long long codec,
    long long max_decompressed_bytes,
    long long count,
    bint requires_key,
    long long untimed_delta_ms,
    long long *row,
) except -1
