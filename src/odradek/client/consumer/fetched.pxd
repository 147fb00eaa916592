# C types of fetched.py.

cimport cython


@cython.final
cdef class Fetched:
    cdef readonly object state
    cdef readonly long long generation
    cdef readonly Py_ssize_t size
    cdef readonly long long last_leader_epoch
    cdef readonly long long leader_epoch
    cdef readonly long long next_fetch_offset
    cdef readonly long long offset
    cdef object _content
    cdef bint _checks_crc
    cdef object _aborted
    cdef set _aborting
    cdef object _scan
    cdef Py_ssize_t _next_batch
    cdef object _rows
    cdef Py_ssize_t _rows_batch
    cdef Py_ssize_t _row
    cdef Py_ssize_t _row_count
    cdef long long _last_offset

    @cython.locals(wanted=Py_ssize_t, end=Py_ssize_t)
    cpdef take(self, Py_ssize_t limit, key_deserializer, value_deserializer, list records)
    @cython.locals(before=Py_ssize_t)
    cdef _take_rows(self, Py_ssize_t end, key_deserializer, value_deserializer, list records)
    cdef bint _take_batches(self, Py_ssize_t max_rows, sink) except -1
    cdef _take_batch(self, header, sink)
    cdef bint _open_next(self, Py_ssize_t max_rows) except -1
    cdef _next_data(self, Py_ssize_t max_rows)
    cdef _next_header(self)
    cdef _index_run(self, Py_ssize_t max_rows)
    cdef _index(self, header, position)
    cdef bint _is_for_reader(self, header, position) except -1
    cdef bint _is_data(self, header, position) except -1
