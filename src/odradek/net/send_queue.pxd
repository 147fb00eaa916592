# C types of send_queue.py.

cimport cython

@cython.final
cdef class SendQueue:
    cdef object _socket
    cdef int _fd
    cdef bint _can_cork
    cdef bint _is_corked
    cdef object _parts
    cdef Py_ssize_t _started
    cdef readonly Py_ssize_t unsent_bytes

    @cython.locals(size=Py_ssize_t)
    cpdef add(self, parts)
    @cython.locals(sent=Py_ssize_t)
    cpdef bint send(self, parts) except -1
    @cython.locals(sent=Py_ssize_t)
    cpdef bint flush(self) except -1
    cdef _cork(self, bint wanted)
    cdef Py_ssize_t _send_some(self) except -1
    @cython.locals(buffers=list, sent=Py_ssize_t)
    cdef Py_ssize_t _send_buffers(self) except -1
    cdef _drop(self, Py_ssize_t sent)
