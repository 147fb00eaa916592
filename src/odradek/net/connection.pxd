# C types of connection.py.

cimport cython

from odradek.net.exchange cimport ExchangeQueue
from odradek.net.frames cimport FrameAssembler
from odradek.net.request_limit cimport RequestLimit
from odradek.net.send_queue cimport SendQueue


@cython.final
cdef class Connection:
    cdef object _loop
    cdef object _socket
    cdef int _fd
    cdef object _handle
    cdef object _on_close
    cdef object _receive_buffer
    cdef RequestLimit _request_limit
    cdef FrameAssembler _assembler
    cdef ExchangeQueue _exchanges
    cdef SendQueue _outgoing
    cdef object _held
    cdef bint _is_muted
    cdef bint _is_reading
    cdef bint _is_serving
    cdef bint _is_writing
    cdef bint _closed
    cdef public bint is_exempt
    cdef frozenset _exempt_api_keys
    cdef public double last_active
    cdef readonly str host
    cdef readonly str peer
    cdef public object state
    cdef public dict at_close
    cdef Py_ssize_t _max_open_requests
    cdef Py_ssize_t _max_unsent_bytes

    cpdef close(self, str reason=*)
    cdef _read(self, bint wanted)
    cdef _write(self, bint wanted)
    @cython.locals(count=Py_ssize_t, is_first_piece=bint)
    cpdef _readable(self)
    cdef bint _is_exempt_next(self) except -1
    cdef _received(self, Py_ssize_t count)
    cdef _serve_one(self, frame)
    @cython.locals(index=Py_ssize_t)
    cdef _serve(self, list frames)
    cdef bint _is_full(self) except -1
    cdef _stall(self)
    cdef _flush(self, parts)
