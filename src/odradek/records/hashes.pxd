# C types of the constants in hashes.py, and what other compiled modules may call without Python in between.

cdef unsigned long long _MURMUR, _SEED, _MASK

cpdef long long murmur2(bytes key) noexcept
