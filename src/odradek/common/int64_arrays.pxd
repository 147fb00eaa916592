# The C side of int64_arrays.py; inlined wherever it is used.

from cpython.array cimport array, extend_buffer


cdef inline long long *numbers_of(array column) except NULL:
    if column.ob_descr.itemsize != sizeof(long long):
        raise TypeError("an array of 64-bit numbers is needed")
    return column.data.as_longlongs


cdef inline int append_number(array column, long long number) except -1:
    if column.ob_descr.itemsize != sizeof(long long):
        raise TypeError("an array of 64-bit numbers is needed")
    return extend_buffer(column, <char *> &number, 1)


cdef inline Py_ssize_t count_up_to(array column, long long limit) except -1:
    cdef Py_ssize_t low = 0, high = len(column), middle
    cdef bint is_wide = column.ob_descr.itemsize == sizeof(long long)
    if not is_wide and column.ob_descr.itemsize != sizeof(int):
        raise TypeError("an array of 32-bit or 64-bit numbers is needed")
    while low < high:
        middle = (low + high) // 2
        if (column.data.as_longlongs[middle] if is_wide else column.data.as_ints[middle]) <= limit:
            low = middle + 1
        else:
            high = middle
    return low
