# C types of warming.py.

cimport cython

from odradek.log.log_tail cimport LogTail


@cython.locals(end_offset="long long")
cpdef bint is_warm(LogTail log, long long offset, long long max_bytes) except -1
