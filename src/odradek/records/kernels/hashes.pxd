# C types of the constants in hashes.py, and what other compiled modules may call without Python in between.

cdef unsigned long long _MURMUR, _SEED, _MASK
cdef long long _TWO_TO_32

cpdef long long murmur2(bytes key) noexcept
cdef long long murmur2_at(const unsigned char* key, Py_ssize_t length) noexcept nogil
