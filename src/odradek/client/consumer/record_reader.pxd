# C types of reader.py.

cimport cython

from odradek.client.consumer.fetch.fetched cimport Fetched
from odradek.client.consumer.fetch.fetch_buffer cimport FetchBuffer


@cython.final
cdef class RecordReader:
    cdef readonly FetchBuffer fetch_buffer
    cdef object _intercept
    cdef readonly object leftover
    cdef readonly object statistics
    cdef public bint has_drained
    cdef object _key_deserializer
    cdef object _value_deserializer
    cdef list _held

    @cython.locals(records=list, seen=Py_ssize_t, before=Py_ssize_t, fetched=Fetched)
    cpdef list next_records(self, Py_ssize_t limit)
    @cython.locals(fetched=Fetched)
    cdef Fetched _next_fetched(self)
    cdef _advance(self, Fetched fetched)
