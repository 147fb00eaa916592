# C types of the constants in record_check.py, and what other compiled modules may call.

cdef int _RECORD_LENGTH, _BAD_TIMESTAMP_DELTA, _BAD_OFFSET_DELTA, _BAD_KEY, _BAD_VALUE
cdef int _BAD_HEADER_COUNT, _BAD_HEADER_KEY, _BAD_HEADER_VALUE
cdef int _NOT_FILLED, _TOO_FEW, _BYTES_LEFT, _WRONG_OFFSET, _NO_KEY

cdef int _OFFSET_DELTA, _TIMESTAMP_DELTA, _KEY_POSITION, _KEY_LENGTH, _VALUE_POSITION, _VALUE_LENGTH
cdef int _HEADERS_POSITION, _HEADER_COUNT, _ROW_WIDTH, _SMALLEST_RECORD

cdef int _FOUND_POSITION, _FOUND_INDEX, _FOUND_LEAST, _FOUND_GREATEST

cpdef check_bounds(Py_ssize_t size, Py_ssize_t start, Py_ssize_t end)
cpdef long long wrapping_sum(long long base, long long delta) noexcept nogil
cpdef long long wrapping_difference(long long number, long long base) noexcept nogil
cdef Py_ssize_t take_bytes(
    const unsigned char* buffer, Py_ssize_t position, Py_ssize_t end, long long* row, Py_ssize_t at
) noexcept nogil
cdef Py_ssize_t walk_record(
    const unsigned char* buffer, Py_ssize_t position, Py_ssize_t limit, long long* row, Py_ssize_t at
) noexcept nogil
cdef Py_ssize_t check_raw_records(
    const unsigned char *raw,
    Py_ssize_t start,
    Py_ssize_t end,
    long long count,
    long long last_offset_delta,
    bint is_strict,
    bint requires_key,
    long long untimed_delta,
    long long *row,
) noexcept nogil
