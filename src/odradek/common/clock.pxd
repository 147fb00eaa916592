# C types of clock.py.

cimport cython


@cython.final
cdef class SystemClock:
    cpdef long long now_ms(self) noexcept
