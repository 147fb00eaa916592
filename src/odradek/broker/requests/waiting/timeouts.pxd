# C types of timeouts.py.

cimport cython

cdef Py_ssize_t _MAX_EMPTY_QUEUES
cdef Timeout _NOWHERE


cdef class Timeout:
    cdef readonly double deadline
    cdef readonly bint is_over
    cdef Timeout _previous
    cdef Timeout _next


@cython.final
cdef class Timeouts:
    cdef object _loop
    cdef object _on_timeout
    cdef readonly dict queues
    cdef Py_ssize_t _max_queues
    cdef object _timer
    cdef double _timer_deadline
    cdef Py_ssize_t _count

    @cython.locals(deadline=double, head=Timeout, last=Timeout)
    cpdef add(self, Timeout timeout, long long timeout_ms)
    cpdef cancel(self, Timeout timeout)
    @cython.locals(previous=Timeout, following=Timeout)
    cdef _remove(self, Timeout timeout)
    @cython.locals(head=Timeout)
    cdef Timeout _add_queue(self, long long timeout_ms, double deadline)
    @cython.locals(head=Timeout)
    cdef _drop_empty_queues(self)
    cdef _set_timer(self, double deadline)
    @cython.locals(head=Timeout, first=Timeout, now=double, expired=list)
    cpdef _expire(self)
