# The C side of socket_calls.py; inlined wherever it is used.

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Check, PyByteArray_GET_SIZE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_SetFromErrno
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from posix.types cimport off_t
from libc.errno cimport EAGAIN, EINTR, errno

from odradek.common.byte_access cimport writable_raw_bytes

cdef extern from "<sys/socket.h>" nogil:
    ssize_t c_recv "recv"(int fd, void *buffer, size_t size, int flags)
    ssize_t c_send "send"(int fd, const void *raw, size_t size, int flags)

cdef extern from "<sys/sendfile.h>" nogil:
    ssize_t c_sendfile "sendfile"(int fd, int file_fd, off_t *position, size_t size)

cdef enum:
    NOTHING_YET = -1


cdef inline Py_ssize_t receive(int fd, object buffer) except -2:
    cdef unsigned char *raw = writable_raw_bytes(buffer)
    cdef size_t size = PyMemoryView_GET_BUFFER(buffer).len
    cdef Py_ssize_t count
    with nogil:
        count = c_recv(fd, raw, size, 0)
    if count < 0:
        if errno == EAGAIN or errno == EINTR:
            return NOTHING_YET
        PyErr_SetFromErrno(OSError)
    return count


cdef inline Py_ssize_t send(int fd, object answer) except -2:
    cdef const void *raw
    cdef size_t size
    cdef Py_ssize_t count
    if PyBytes_Check(answer):
        raw, size = PyBytes_AS_STRING(answer), PyBytes_GET_SIZE(answer)
        with nogil:
            count = c_send(fd, raw, size, 0)
    elif PyByteArray_Check(answer):
        # With the interpreter lock: without it, another thread could resize the array meanwhile.
        raw, size = PyByteArray_AS_STRING(answer), PyByteArray_GET_SIZE(answer)
        count = c_send(fd, raw, size, 0)
    else:
        raise TypeError("bytes or a bytearray are needed")
    if count < 0:
        if errno == EAGAIN or errno == EINTR:
            return 0
        PyErr_SetFromErrno(OSError)
    return count


cdef inline Py_ssize_t send_file(int fd, int file_fd, long long position, size_t size) except -2:
    cdef off_t start = position
    cdef Py_ssize_t count
    with nogil:
        count = c_sendfile(fd, file_fd, &start, size)
    if count < 0:
        if errno == EAGAIN or errno == EINTR:
            return NOTHING_YET
        PyErr_SetFromErrno(OSError)
    return count
