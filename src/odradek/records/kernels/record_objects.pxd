# C types of the constants in record_objects.py.

cdef int _BYTES_LEFT
cdef int _OFFSET_DELTA, _TIMESTAMP_DELTA, _KEY_POSITION, _KEY_LENGTH, _VALUE_POSITION, _VALUE_LENGTH
cdef int _HEADERS_POSITION, _HEADER_COUNT, _ROW_WIDTH
