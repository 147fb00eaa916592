# The C side of file_calls.py; inlined wherever it is used.

from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from posix.types cimport off_t
from posix.uio cimport iovec

from odradek.common.byte_access cimport raw_bytes

cdef extern from *:
    """
    #include <sys/uio.h>
    #define ODRADEK_MAX_ZEROES (128 << 10)
    static char odradek_zeroes[ODRADEK_MAX_ZEROES];  /* never written: one page of zeroes, seen 32 times */
    """
    const Py_ssize_t ODRADEK_MAX_ZEROES
    char odradek_zeroes[1]

cdef extern from "<sys/uio.h>" nogil:
    ssize_t c_pwritev "pwritev"(int fd, const iovec *parts, int count, off_t position)


cdef inline Py_ssize_t write_run(int fd, object payload, Py_ssize_t position, Py_ssize_t zeroes) except -1:
    cdef iovec parts[2]
    cdef Py_ssize_t count
    parts[0].iov_base = <void *> raw_bytes(payload)
    parts[0].iov_len = PyMemoryView_GET_BUFFER(payload).len
    parts[1].iov_base = <void *> odradek_zeroes
    parts[1].iov_len = min(zeroes, ODRADEK_MAX_ZEROES)
    with nogil:
        count = c_pwritev(fd, parts, 2 if zeroes else 1, position)
    return count if count > 0 else 0
