# C types of log_file.py.

cimport cython

from odradek.log.files.file_system cimport FileRange, FileSystem, OpenFile


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
    cdef long long _paved_end
    cdef long long _size_at_last_look

    @cython.locals(handle=OpenFile)
    cpdef OpenFile handle(self)
    @cython.locals(position=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t append(self, payload) except -1
    @cython.locals(paved_end=Py_ssize_t)
    cdef _write_and_pave(self, payload, Py_ssize_t position, Py_ssize_t end)
    cdef _take_room(self, long long position, long long end)
    cpdef bytes read(self, long long position, long long length)
    cpdef FileRange range(self, long long position, long long length)
