"""The hashes on which we must agree with Java; compiled by Cython, or interpreted as is."""

from __future__ import annotations

import cython

# C integers by hashes.pxd; the masks make Python's integers wrap like them.
_MURMUR = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF
_TWO_TO_32 = 0x100000000


@cython.ccall
@cython.exceptval(check=False)
def murmur2(key: bytes) -> cython.longlong:
    """Murmur 2 of a record's key with Kafka's seed, as Java's signed int."""
    return murmur2_at(key, len(key))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def murmur2_at(key: cython.pointer(cython.const[cython.uchar]), length: cython.Py_ssize_t) -> cython.longlong:
    """The same of `length` bytes wherever they lie."""
    digest: cython.ulonglong = _SEED ^ (length & _MASK)
    word: cython.ulonglong
    i: cython.Py_ssize_t
    tail: cython.Py_ssize_t = length - length % 4
    for i in range(0, tail, 4):
        word = key[i + 3]
        word = (word << 24) | (key[i + 2] << 16) | (key[i + 1] << 8) | key[i]
        word = (word * _MURMUR) & _MASK
        word = ((word ^ (word >> 24)) * _MURMUR) & _MASK
        digest = ((digest * _MURMUR) & _MASK) ^ word
    if tail < length:
        for i in range(length - 1, tail - 1, -1):
            word = key[i]
            digest ^= word << (8 * (i - tail))
        digest = (digest * _MURMUR) & _MASK
    digest = ((digest ^ (digest >> 13)) * _MURMUR) & _MASK
    digest ^= digest >> 15
    return _signed_int32(digest)


def to_positive(number: cython.longlong):
    """A hash without its sign bit, as Java's Utils.toPositive."""
    return number & 0x7FFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _signed_int32(number: cython.longlong) -> cython.longlong:
    return number - _TWO_TO_32 if number > 0x7FFFFFFF else number
