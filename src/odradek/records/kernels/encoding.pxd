# What other compiled modules may call without Python in between.

cimport cython

cpdef Py_ssize_t size_of_varint(long long number) noexcept nogil
cdef Py_ssize_t write_varint(unsigned char* out, Py_ssize_t position, long long number) noexcept nogil
cpdef Py_ssize_t size_of_body(
    long long timestamp_delta, long long offset_delta, bytes key, bytes value, headers
) except -1
cdef Py_ssize_t write_record(
    unsigned char* out,
    Py_ssize_t position,
    Py_ssize_t body,
    long long timestamp_delta,
    long long offset_delta,
    bytes key,
    bytes value,
    headers,
) except -1

@cython.locals(raw="unsigned char *")
cpdef write_header(
    batch,
    long long base_offset,
    long long partition_leader_epoch,
    long long attributes,
    long long last_offset_delta,
    long long base_timestamp_ms,
    long long max_timestamp_ms,
    long long producer_id,
    long long producer_epoch,
    long long base_sequence,
    long long record_count,
)
