# C types of the constants in hashes.py.

cdef unsigned long long _MURMUR, _SEED, _MASK
