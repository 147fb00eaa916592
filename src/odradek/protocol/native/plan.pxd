# The plan as C sees it, for the reader and the writer.

from cpython.object cimport PyObject

cdef enum:
    BOOL = 0
    INT8 = 1
    INT16 = 2
    UINT16 = 3
    INT32 = 4
    UINT32 = 5
    INT64 = 6
    FLOAT64 = 7
    UUID = 8
    STRING = 9
    BYTES = 10
    RECORDS = 11
    STRUCT = 12

    FRESH_LIST = 1
    FRESH_STRUCT = 2

    MAX_STRING = 0x7FFF
    MAX_INT32 = 0x7FFFFFFF
    MAX_INLINE_RECORDS = 16 * 1024


cdef struct Field:
    # A FieldPlan as C sees it. The objects are borrowed from the Plan's `kept` list.
    int kind
    bint is_array
    bint is_nullable
    bint is_compact
    int tag
    int fresh
    Py_ssize_t slot
    Py_ssize_t element_size
    PyObject *default
    PyObject *struct
    PyObject *name


cdef class Plan:
    cdef object cls
    cdef bint is_flexible
    cdef bint drops_absent
    cdef Py_ssize_t tagged_start
    cdef Py_ssize_t absent_start
    cdef Py_ssize_t end
    cdef Field *fields
    cdef list kept
    cdef int fill(self, Field *field, row) except -1
