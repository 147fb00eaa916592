# What other compiled modules may call without Python in between.

cpdef Py_ssize_t size_of_varint(long long number) noexcept nogil
cpdef Py_ssize_t put_varint(unsigned char[::1] out, Py_ssize_t position, long long number) noexcept nogil
