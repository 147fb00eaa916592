# C types of responses.py.

cimport cython

cdef Py_ssize_t _SIZE_BYTES
cdef long long _TLS_ALERT


@cython.final
cdef class SpareBuffers:
    cdef list _buffers


@cython.final
cdef class ResponseAssembler:
    cdef object _received
    cdef Py_ssize_t _kept
    cdef object _response
    cdef Py_ssize_t _filled
    cdef long long _max_bytes
    cdef SpareBuffers _spares

    cpdef buffer(self)
    cpdef list filled(self, Py_ssize_t count)
    @cython.locals(responses=list, position=Py_ssize_t, size="long long")
    cdef list _split(self, Py_ssize_t end)
    cdef _begin(self, long long size, first)
    @cython.locals(size="long long")
    cdef Py_ssize_t _read_size(self, Py_ssize_t position) except -1
