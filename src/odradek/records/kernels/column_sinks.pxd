# C types of column_sinks.py.

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

cdef int _BYTES_LEFT, _OFFSET_DELTA, _TIMESTAMP_DELTA, _KEY_POSITION, _KEY_LENGTH, _VALUE_POSITION, _VALUE_LENGTH
cdef int _HEADERS_POSITION, _HEADER_COUNT, _ROW_WIDTH
cdef int _BATCH_WIDTH, _BATCH_BASE_OFFSET, _BATCH_SIZE, _BATCH_BASE_TIMESTAMP, _BATCH_RECORDS
cdef int _HEADER_SIZE, _SMALLEST_RECORD, _SMALLEST_HEADER, _NO_ROOM


cdef unsigned char* _look(object memory) except NULL


cdef inline unsigned char* address_of(object memory) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(memory, &view, PyBUF_WRITABLE)
    PyBuffer_Release(&view)
    return <unsigned char*> view.buf
