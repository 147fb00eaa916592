# The C side of readiness.py; inlined wherever it is used.

from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport EINTR, errno

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents

    int c_poll "poll"(pollfd *descriptors, unsigned long count, int timeout_ms)
    short POLLIN

cdef enum:
    READABLE = 1
    WAKEUP = 2


cdef inline int wait_for_bytes(int fd, int wakeup_fd, int timeout_ms) except -1:
    cdef pollfd descriptors[2]
    cdef int count
    descriptors[0].fd, descriptors[0].events, descriptors[0].revents = fd, POLLIN, 0
    descriptors[1].fd, descriptors[1].events, descriptors[1].revents = wakeup_fd, POLLIN, 0
    with nogil:
        count = c_poll(descriptors, 2, timeout_ms)
    if count < 0:
        if errno == EINTR:
            PyErr_CheckSignals()
        return 0
    return (READABLE if descriptors[0].revents else 0) | (WAKEUP if descriptors[1].revents else 0)
