# The C side of numbers.py; inlined wherever it is used.

from cpython.array cimport array, extend_buffer


cdef inline long long *numbers_of(array column) except NULL:
    if column.ob_descr.itemsize != sizeof(long long):
        raise TypeError("an array of 64-bit numbers is needed")
    return column.data.as_longlongs


cdef inline int append_number(array column, long long number) except -1:
    if column.ob_descr.itemsize != sizeof(long long):
        raise TypeError("an array of 64-bit numbers is needed")
    return extend_buffer(column, <char *> &number, 1)
