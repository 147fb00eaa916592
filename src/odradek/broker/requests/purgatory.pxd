# C types of purgatory.py.

cimport cython


cdef class Waiter:
    cdef public object connection
    cdef public tuple keys
    cdef public object timer

    cpdef bint try_complete(self) except -1
    cpdef on_timeout(self)


@cython.final
cdef class CallingWaiter(Waiter):
    cdef object _try_complete
    cdef object _on_timeout


@cython.final
cdef class Purgatory:
    cdef object _loop
    cdef readonly dict watching
    cdef set _woken

    @cython.locals(watching=dict, waiters=dict)
    cpdef add(self, Waiter waiter, tuple keys, long long timeout_ms)
    cpdef wake(self, key)
    @cython.locals(watching=dict, waiters=dict)
    cpdef forget(self, Waiter waiter)
