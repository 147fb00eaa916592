# C types of files.py.

cimport cython


@cython.final
cdef class OpenFile:
    cdef readonly int fd


@cython.final
cdef class FileRange:
    cdef readonly OpenFile file
    cdef readonly long long position
    cdef readonly long long length


cdef class FileSystem:
    cpdef bytes read_at(self, OpenFile file, Py_ssize_t length, long long position)
    @cython.locals(fd=int, size=Py_ssize_t, written=Py_ssize_t, octets="const unsigned char *")
    cpdef write_at(self, OpenFile file, payload, Py_ssize_t position)


@cython.final
cdef class HandleCache:
    cdef public FileSystem files
    cdef public Py_ssize_t limit
    cdef object _open

    cpdef touch(self, LogFile file)
    cpdef admit(self, LogFile file)


cdef class PartitionDirectory:
    cdef public str path
    cdef readonly HandleCache handles


@cython.final
cdef class LogFile:
    cdef public PartitionDirectory directory
    cdef public str name
    cdef public long long size
    cdef OpenFile _handle
    cdef long long _room_end

    @cython.locals(handle=OpenFile)
    cpdef OpenFile handle(self)
    cdef _take_room(self, long long position, long long end)
    @cython.locals(position=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t append(self, payload) except -1
    cpdef bytes read(self, long long position, long long length)
    cpdef FileRange range(self, long long position, long long length)
