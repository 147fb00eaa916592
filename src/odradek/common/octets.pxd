# The C side of octets.py; inlined wherever it is used.

from cpython.buffer cimport PyBuffer_IsContiguous
from cpython.memoryview cimport PyMemoryView_Check, PyMemoryView_GET_BUFFER


cdef inline const unsigned char *octets_of(object view) except NULL:
    cdef Py_buffer *buffer
    if not PyMemoryView_Check(view):
        raise TypeError("a memoryview is needed")
    buffer = PyMemoryView_GET_BUFFER(view)
    if buffer.itemsize != 1 or not PyBuffer_IsContiguous(buffer, b"C"):
        raise BufferError("bytes one behind the other are needed")
    return <const unsigned char *> buffer.buf


cdef inline unsigned char *writable_octets_of(object view) except NULL:
    octets = octets_of(view)
    if PyMemoryView_GET_BUFFER(view).readonly:
        raise BufferError("bytes that may be written are needed")
    return <unsigned char *> octets
