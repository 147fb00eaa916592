# C types of direct_read.py.

cimport cython

from odradek.client.network.responses cimport ResponseAssembler
from odradek.client.network.in_flight cimport ResponseHandler

cdef double _MAX_WAIT_MS


cdef class DirectReadOwner:
    cpdef dispatch(self, frame)


@cython.final
cdef class DirectRead:
    cdef readonly bint is_active
    cdef readonly long long responses
    cdef readonly object wait_lock
    cdef public ResponseHandler deferred
    cdef DirectReadOwner _owner
    cdef object _idle_timer
    cdef object _loop
    cdef object _transport
    cdef ResponseAssembler _assembler
    cdef object _read_lock
    cdef int _descriptor
    cdef int _wakeup_fd
    cdef int _wakeup_write_fd

    cpdef release(self)
    @cython.locals(timeout_ms=double, ready=int)
    cpdef wait(self, double timeout_s)
    cpdef read_available(self)
    cdef _drain_wakeups(self)
    @cython.locals(handler=ResponseHandler)
    cdef _run_deferred(self, bint is_direct)
    @cython.locals(owner=DirectReadOwner, count=Py_ssize_t)
    cdef _read(self)
