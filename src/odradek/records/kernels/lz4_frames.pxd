# C types of lz4_frames.py.

cimport cython

cdef dict _LARGEST_BLOCKS
cdef Py_ssize_t _NOT_ORDINARY, _HEADER_BYTES, _LENGTH_BYTES


@cython.locals(
    raw="const unsigned char *", end=Py_ssize_t, block_limit=Py_ssize_t, position=Py_ssize_t, written=Py_ssize_t,
    limit=Py_ssize_t, length=Py_ssize_t, is_stored=bint, free=Py_ssize_t,
)
cpdef Py_ssize_t decompress_into(view, Py_ssize_t start, output) except -2
