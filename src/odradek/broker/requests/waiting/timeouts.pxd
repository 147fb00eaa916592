# C types of timeouts.py.

cimport cython


cdef class Timeout:
    cdef public double deadline
    cdef public bint is_over


@cython.final
cdef class Timeouts:
    cdef object _loop
    cdef object _on_timeout
    cdef dict _queues
    cdef object _timer
    cdef Py_ssize_t _count
    cdef Py_ssize_t _stale

    cpdef add(self, Timeout timeout, long long timeout_ms)
    cpdef cancel(self, Timeout timeout)
