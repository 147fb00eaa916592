# What other compiled modules may call without Python in between.

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
