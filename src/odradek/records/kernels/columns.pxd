# C types of the constants in columns.py.

cdef int _HEADER_SIZE, _MAX_INT32
