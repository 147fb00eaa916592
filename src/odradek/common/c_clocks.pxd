# The C side of c_clocks.py; inlined wherever it is used.

from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME, clock_gettime, timespec

from odradek.common.simulated_clock cimport simulated_seconds


cdef inline double monotonic_seconds() noexcept nogil:
    if simulated_seconds >= 0:
        return simulated_seconds
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <double> now.tv_sec + 1e-9 * <double> now.tv_nsec


cdef inline long long wall_clock_ms() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <long long> now.tv_sec * 1000 + now.tv_nsec // 1000000
