# C types of the constants in batch_scan.py.

cdef int _AT_END, _TABLE_FULL, _TRUNCATED, _BAD_LENGTH, _BAD_MAGIC, _HEADER_SIZE
cdef long long _MASK
