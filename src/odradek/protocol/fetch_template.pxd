# C types of fetch_template.py.

cimport cython

cdef Py_ssize_t _THROTTLE, _ERROR, _SESSION, _TOPIC_COUNT, _TOPIC, _PARTITION_COUNT, _PARTITION
cdef Py_ssize_t _PARTITION_ERROR, _HIGH_WATERMARK, _LAST_STABLE_OFFSET, _LOG_START_OFFSET
cdef Py_ssize_t _ABORTED, _PREFERRED_REPLICA, _RECORDS_LENGTH, _END_BYTES
cdef int _ONE


@cython.final
cdef class FetchTemplate:
    cdef bytes _frame
    cdef Py_ssize_t _epoch_position
    cdef Py_ssize_t _offset_position

    @cython.locals(frame=bytearray, raw="unsigned char *")
    cpdef bytearray request(self, long long session_epoch, long long fetch_offset)


@cython.final
cdef class PlainFetchAnswer:
    cdef readonly bytes name
    cdef readonly long long high_watermark
    cdef readonly long long last_stable_offset
    cdef readonly long long log_start_offset
    cdef readonly object records


@cython.locals(raw="const unsigned char *", end=Py_ssize_t, start=Py_ssize_t)
cpdef PlainFetchAnswer read_plain_fetch(frame, long long session_id)

@cython.locals(position=Py_ssize_t, number="long long", shift=int, byte="unsigned char")
cdef Py_ssize_t _start_of_records(const unsigned char *raw, Py_ssize_t end) noexcept
