# C types of frames.py.

cimport cython

cdef Py_ssize_t _SIZE_BYTES, _LARGE_BYTES


@cython.final
cdef class BufferPool:
    cdef public Py_ssize_t max_bytes
    cdef list _free
    cdef Py_ssize_t _free_bytes

    @cython.locals(index=Py_ssize_t)
    cpdef bytearray acquire(self, Py_ssize_t size)
    cpdef release(self, bytearray buffer)


@cython.final
cdef class FrameAssembler:
    cdef public Py_ssize_t max_frame_bytes
    cdef BufferPool _buffers
    cdef bytes _size_bytes
    cdef bytearray _partial
    cdef bytearray _complete
    cdef Py_ssize_t _size
    cdef Py_ssize_t _filled
    cdef readonly bint is_large_expected

    cpdef free_space(self)
    @cython.locals(partial=bytearray)
    cpdef filled(self, Py_ssize_t count)
    cpdef done(self)
    @cython.locals(size=Py_ssize_t)
    cpdef only_frame(self, received, Py_ssize_t count)
    @cython.locals(frames=list, position=Py_ssize_t, end=Py_ssize_t, size_end=Py_ssize_t, size=Py_ssize_t)
    cpdef list feed(self, received)
    @cython.locals(size=Py_ssize_t)
    cdef Py_ssize_t _read_size(self, received, Py_ssize_t position, Py_ssize_t size_end) except -1
    @cython.locals(count=Py_ssize_t)
    cdef Py_ssize_t _copy_into_partial(self, received, Py_ssize_t position, list frames) except -1
