# C types of the constants in checksums.py.

cdef int _WIDTH, _POSITION, _SIZE, _CRC, _SMALL_BYTES
cdef unsigned int _ALL_ONES
cdef const unsigned int[::1] _TABLES
