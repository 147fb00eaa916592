# The C side of simulated_clock.py.

cdef double simulated_seconds
