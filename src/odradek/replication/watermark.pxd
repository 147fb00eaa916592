# C types of watermark.py.

cimport cython


@cython.locals(least="long long", end="long long", count="long long")
cpdef long long high_watermark(dict end_offsets, in_sync, long long current, long long min_in_sync) except -2
