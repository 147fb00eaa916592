# C types of fast_validation.py.

cimport cython

cdef long long _CRC_BEGINS, _CRC_POSITION, _MAGIC_POSITION, _CODEC_MASK, _CONTROL_FLAG, _LOG_APPEND_TIME_FLAG
cdef long long _HEADER_SIZE, _LOG_OVERHEAD, _MAGIC, _NO_TIMESTAMP, _ENDLESS_MS, _LZ4, _LAST_CODEC
cdef list _free_scratch
cdef int _FOUND_LEAST, _FOUND_GREATEST


@cython.final
@cython.freelist(4)
cdef class ValidBatch:
    cdef readonly long long attributes
    cdef readonly long long last_offset_delta
    cdef readonly long long max_timestamp_ms
    cdef readonly long long greatest_ms
    cdef readonly long long producer_id
    cdef readonly object plain


@cython.locals(
    raw="const unsigned char *", size="long long", attributes="long long", last_delta="long long",
    base_ms="long long", max_ms="long long", producer_id="long long", count="long long",
    untimed_delta_ms="long long", own_codec="long long", problem=Py_ssize_t, row="long long[16]",
    greatest_ms="long long", keeps_plain=bint, kept=list,
)
cpdef ValidBatch accept(
    view,
    long long max_message_bytes,
    long long max_decompressed_bytes,
    bint requires_key,
    bint checks_times,
    long long earliest_ms,
    long long latest_ms,
    long long codec,
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
    list kept,
) except -1
