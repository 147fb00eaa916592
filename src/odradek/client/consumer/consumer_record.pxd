# C types of consumer_record.py.

cimport cython


cdef extern from "Python.h":
    void PyObject_GC_UnTrack(void* object)


cdef int _ROW_WIDTH, _OFFSET_DELTA, _TIMESTAMP_DELTA, _KEY_POSITION, _KEY_LENGTH, _VALUE_POSITION, _VALUE_LENGTH
cdef int _HEADERS_POSITION, _HEADER_COUNT


@cython.final
@cython.freelist(512)
cdef class ConsumerRecord:
    cdef readonly str topic
    cdef readonly long long partition
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef readonly object key
    cdef readonly object value
    cdef readonly tuple headers
    cdef readonly long long timestamp_type
    cdef readonly long long leader_epoch


cdef bytes _bytes_at(const unsigned char* source, long long position, long long length)
