# C types of the constants in columns.py.

cdef int _ROW_WIDTH, _KEY_LENGTH, _VALUE_LENGTH, _HEADERS_POSITION, _HEADER_COUNT, _HEADER_SIZE, _MAX_INT32
