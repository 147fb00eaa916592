# C types of produce_template.py.

cimport cython

cdef Py_ssize_t _SIZE_BYTES, _CORRELATION_ID_BYTES
cdef long long _NOT_PLAIN


@cython.final
cdef class ProduceTemplate:
    cdef long long _version
    cdef bytes _head
    cdef bytes _tail
    cdef bytes _answer_start
    cdef bytes _answer_end
    cdef Py_ssize_t _answer_bytes
    cdef Py_ssize_t _base_offset_position
    cdef Py_ssize_t _append_time_position
    cdef Py_ssize_t _answer_end_position

    @cython.locals(length=bytes, size=Py_ssize_t)
    cpdef bytes request(self, long long correlation_id, batch)
    @cython.locals(start=Py_ssize_t, end=Py_ssize_t)
    cpdef long long base_offset(self, answer) except *
    cpdef long long log_append_time_ms(self, answer) except *


@cython.locals(number=Py_ssize_t)
cdef bytes _compact_length(Py_ssize_t length)
