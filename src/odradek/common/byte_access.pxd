# The C side of byte_access.py; inlined wherever it is used.

from cpython.buffer cimport PyBuffer_IsContiguous
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_FromObject, PyMemoryView_GET_BUFFER


cdef inline const unsigned char *raw_bytes(object view) except NULL:
    cdef Py_buffer *buffer
    if not PyMemoryView_Check(view):
        raise TypeError("a memoryview is needed")
    buffer = PyMemoryView_GET_BUFFER(view)
    if buffer.itemsize != 1 or not PyBuffer_IsContiguous(buffer, b"C"):
        raise BufferError("bytes one behind the other are needed")
    return <const unsigned char *> buffer.buf


cdef inline unsigned char *writable_raw_bytes(object view) except NULL:
    cdef const unsigned char *raw = raw_bytes(view)
    if PyMemoryView_GET_BUFFER(view).readonly:
        raise BufferError("bytes that may be written are needed")
    return <unsigned char *> raw


cdef inline object part_of(object view, Py_ssize_t start, Py_ssize_t end):
    # A second view, made narrower before anybody has seen it: `view[start:end]` makes three objects more.
    cdef Py_buffer *buffer
    cdef object part
    raw_bytes(view)
    buffer = PyMemoryView_GET_BUFFER(view)
    if buffer.ndim != 1 or start < 0 or start > end or end > buffer.len:
        raise IndexError("a part reaches beyond its view")
    part = PyMemoryView_FromObject(view)
    buffer = PyMemoryView_GET_BUFFER(part)
    buffer.buf = <char *> buffer.buf + start
    buffer.len = end - start
    buffer.shape[0] = end - start
    return part


cdef inline bytes copied(const unsigned char *raw, Py_ssize_t start, Py_ssize_t end):
    return PyBytes_FromStringAndSize(<const char *> raw + start, end - start)


cdef inline long long int16_at(const unsigned char *raw, Py_ssize_t position) noexcept nogil:
    return <short> ((raw[position] << 8) | raw[position + 1])


cdef inline long long uint32_at(const unsigned char *raw, Py_ssize_t position) noexcept nogil:
    return (
        (<unsigned int> raw[position] << 24)
        | (<unsigned int> raw[position + 1] << 16)
        | (<unsigned int> raw[position + 2] << 8)
        | <unsigned int> raw[position + 3]
    )


cdef inline long long int32_at(const unsigned char *raw, Py_ssize_t position) noexcept nogil:
    return <int> uint32_at(raw, position)


cdef inline long long int64_at(const unsigned char *raw, Py_ssize_t position) noexcept nogil:
    return <long long> (
        (<unsigned long long> uint32_at(raw, position) << 32)
        | <unsigned long long> uint32_at(raw, position + 4)
    )


cdef inline void put_int16(unsigned char *raw, Py_ssize_t position, long long number) noexcept nogil:
    raw[position] = (number >> 8) & 0xFF
    raw[position + 1] = number & 0xFF


cdef inline void put_uint32(unsigned char *raw, Py_ssize_t position, long long number) noexcept nogil:
    put_int32(raw, position, number)


cdef inline void put_int32(unsigned char *raw, Py_ssize_t position, long long number) noexcept nogil:
    raw[position] = (number >> 24) & 0xFF
    raw[position + 1] = (number >> 16) & 0xFF
    raw[position + 2] = (number >> 8) & 0xFF
    raw[position + 3] = number & 0xFF


cdef inline void put_int64(unsigned char *raw, Py_ssize_t position, long long number) noexcept nogil:
    put_int32(raw, position, number >> 32)
    put_int32(raw, position + 4, number)
