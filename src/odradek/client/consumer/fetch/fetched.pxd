# C types of fetched.py.

cimport cython

cdef Py_ssize_t _BATCH_ROW_WIDTH, _POSITION, _LAST_OFFSET, _LEADER_EPOCH


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
    cdef object _batches
    cdef Py_ssize_t _count
    cdef object _stop
    cdef Py_ssize_t _next_batch
    cdef object _rows
    cdef Py_ssize_t _rows_batch
    cdef Py_ssize_t _row
    cdef Py_ssize_t _row_count
    cdef long long _last_offset

    cpdef mark_buffered(self)
    @cython.locals(wanted=Py_ssize_t, end=Py_ssize_t)
    cpdef append_records(self, Py_ssize_t limit, key_deserializer, value_deserializer, list records)
    @cython.locals(before=Py_ssize_t)
    cdef _append_rows(self, Py_ssize_t end, key_deserializer, value_deserializer, list records)
    cdef bint _append_batches(self, Py_ssize_t max_rows, sink) except -1
    cdef _append_batch(self, sink)
    cdef bint _open_next(self, Py_ssize_t max_rows) except -1
    @cython.locals(first=Py_ssize_t, end=Py_ssize_t, rows=Py_ssize_t)
    cdef bint _open_run(self, Py_ssize_t max_rows) except -1
    cdef bint _open_batch(self) except -1
    cdef bint _find_next(self) except -1
    cdef long long _field(self, Py_ssize_t index, Py_ssize_t column) except *
    cdef _index(self, header, position)
    cdef bint _is_for_reader(self, header, position) except -1
    cdef bint _is_data(self, header, position) except -1
