# C types of poll_path.py.

cimport cython

from odradek.client.consumer.fetch.fetch_buffer cimport FetchBuffer
from odradek.client.consumer.record_reader cimport RecordReader


cdef class PollPath:
    cdef readonly FetchBuffer _fetch_buffer
    cdef readonly RecordReader _reader
    cdef object _max_poll_records
    cdef readonly object _using
    cdef public object _background
    cdef public object _engine
    cdef public object _auto_commit
    cdef public bint _is_open

    cpdef _poll(self, timeout, limit, take)
    @cython.locals(fetch_buffer=FetchBuffer, reader=RecordReader, now=double, deadline=double)
    cdef _take_or_wait(self, double timeout_s, limit, take)
    cpdef _begin_to_use(self)
