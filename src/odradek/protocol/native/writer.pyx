"""Messages to bytes, compiled: the fast twin of the writing half of walker.py, same errors in the same field."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AsDouble
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memmove

from odradek.protocol.native.plan cimport (
    BOOL, FLOAT64, FRESH_LIST, FRESH_STRUCT, INT8, INT16, INT32, INT64, MAX_INLINE_RECORDS, MAX_INT32, MAX_STRING, RECORDS, STRING, STRUCT,
    UINT16, UINT32, UUID, Field, Plan,
)

from odradek.protocol.errors import EncodeError


cdef extern from *:
    """
    #define ODRADEK_SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
    """
    PyObject *ODRADEK_SLOT(PyObject *message, Py_ssize_t offset)


cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    int PyUnicode_Check(object value)
    int PyLong_Check(object value)
    int PyBytes_Check(object value)
    int PyBytes_CheckExact(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1


cdef class Writer:
    """A growing buffer, and the parts that are finished before it."""

    cdef uint8_t *bytes
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef bint keeps_records_apart
    cdef list parts
    cdef Py_ssize_t parts_size

    def __cinit__(self, bint keeps_records_apart):
        self.keeps_records_apart = keeps_records_apart
        self.parts = []
        self.capacity = 256
        self.bytes = <uint8_t *>PyMem_Malloc(self.capacity)
        if self.bytes == NULL:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.bytes)

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL:
        # The place for `size` more bytes, which count as written.
        cdef Py_ssize_t at = self.size
        cdef uint8_t *grown
        if size > self.capacity - at:
            grown = <uint8_t *>PyMem_Realloc(self.bytes, (at + size) * 2)
            if grown == NULL:
                raise MemoryError
            self.bytes = grown
            self.capacity = (at + size) * 2
        self.size = at + size
        return self.bytes + at

    cdef int byte(self, uint8_t value) except -1:
        self.reserve(1)[0] = value
        return 0

    cdef int copy(self, const void *source, Py_ssize_t size) except -1:
        memcpy(self.reserve(size), source, size)
        return 0

    cdef int big_endian(self, uint64_t value, int size) except -1:
        cdef uint8_t *at = self.reserve(size)
        cdef int index
        for index in range(size - 1, -1, -1):
            at[index] = value & 0xFF
            value >>= 8
        return 0

    cdef int uvarint(self, uint64_t value) except -1:
        while value >= 0x80:
            self.byte(value & 0x7F | 0x80)
            value >>= 7
        return self.byte(value)

    cdef int length(self, bint is_compact, Py_ssize_t length, int width) except -1:
        if length > MAX_INT32:
            raise EncodeError(f"a length of {length} is too much")
        return self.uvarint(length + 1) if is_compact else self.big_endian(length, width)

    cdef bytes taken(self):
        # The bytes written since the last part.
        cdef bytes part = PyBytes_FromStringAndSize(<const char *>self.bytes, self.size)
        self.size = 0
        return part

    cdef int split(self, object records, Py_ssize_t size) except -1:
        self.parts_size += self.size + size
        self.parts.append(self.taken())
        self.parts.append(records)
        return 0


def encode(Plan plan not None, message):
    """The message as bytes."""
    cdef Writer writer = Writer(False)
    write_struct(plan, message, writer)
    return writer.taken()


def encode_frame(Plan header_plan not None, header, Plan plan not None, message):
    """A frame, size first, as parts to send: bytes, and between them records fields as they were given.

    Records that are few and are bytes are copied: one buffer is cheaper to send than three.
    """
    cdef Writer writer = Writer(True)
    cdef Py_ssize_t size
    cdef char *first
    writer.big_endian(0, 4)
    write_struct(header_plan, header, writer)
    write_struct(plan, message, writer)
    size = writer.parts_size + writer.size - 4
    if size > MAX_INT32:
        raise EncodeError(f"a frame of {size} bytes is too long")
    writer.parts.append(writer.taken())
    # Nobody else has seen the first part yet, so that its size can be filled in.
    first = PyBytes_AS_STRING(writer.parts[0])
    first[0], first[1], first[2], first[3] = size >> 24 & 0xFF, size >> 16 & 0xFF, size >> 8 & 0xFF, size & 0xFF
    return writer.parts


cdef int write_struct(Plan plan, object message, Writer writer) except -1:
    cdef Py_ssize_t index = 0
    cdef Field *field
    if type(message) is not plan.cls and not isinstance(message, plan.cls):
        raise EncodeError(f"needs a {plan.cls.__qualname__}, not {type(message).__name__}")
    if not plan.drops_absent:
        for index in range(plan.absent_start, plan.end):
            field = &plan.fields[index]
            if not is_default(field, slot_value(message, field)):
                raise entered(EncodeError("this version has no such field"), <object>field.name)
    index = 0
    try:
        while index < plan.tagged_start:
            field = &plan.fields[index]
            write_field(field, slot_value(message, field), writer)
            index += 1
    except EncodeError as error:
        error.enter(<object>plan.fields[index].name)
        raise
    if plan.is_flexible:
        if plan.tagged_start == plan.absent_start:
            writer.byte(0)
        else:
            write_tagged_fields(plan, message, writer)
    return 0


cdef inline object slot_value(object message, Field *field):
    cdef PyObject *value = ODRADEK_SLOT(<PyObject *>message, field.slot)
    if value == NULL:
        raise EncodeError(f"{<object>field.name} has no value")
    return <object>value


cdef object entered(error, name):
    error.enter(name)
    return error


cdef int write_tagged_fields(Plan plan, object message, Writer writer) except -1:
    cdef Py_ssize_t index, start, size, shift
    cdef int count = 0
    cdef Field *field
    for index in range(plan.tagged_start, plan.absent_start):
        field = &plan.fields[index]
        count += not is_default(field, slot_value(message, field))
    writer.uvarint(count)
    if count == 0:
        return 0
    for index in range(plan.tagged_start, plan.absent_start):
        field = &plan.fields[index]
        value = slot_value(message, field)
        if is_default(field, value):
            continue
        writer.uvarint(field.tag)
        # The size goes before the value but is known after it: write the value, then reserve its bytes.
        start = writer.size
        try:
            write_field(field, value, writer)
        except EncodeError as error:
            error.enter(<object>field.name)
            raise
        size = writer.size - start
        writer.uvarint(size)
        shift = writer.size - start - size
        move_to_front(writer.bytes + start, size, shift)
    return 0


cdef void move_to_front(uint8_t *start, Py_ssize_t size, Py_ssize_t tail) noexcept:
    # Bring the last `tail` bytes (a uvarint, at most 5) in front of the `size` bytes before them.
    cdef uint8_t kept[8]
    memcpy(kept, start + size, tail)
    memmove(start + tail, start, size)
    memcpy(start, kept, tail)


cdef int is_default(Field *field, object value) except -1:
    if field.fresh == FRESH_LIST:
        return value is not None and len(value) == 0
    if field.fresh == FRESH_STRUCT:
        return value is not None and is_default_struct(<Plan>field.struct, value)
    return value is <object>field.default or value == <object>field.default


cdef int is_default_struct(Plan plan, object value) except -1:
    cdef Py_ssize_t index
    if type(value) is not plan.cls and not isinstance(value, plan.cls):
        return 0
    for index in range(plan.end):
        if not is_default(&plan.fields[index], slot_value(value, &plan.fields[index])):
            return 0
    return 1


cdef int write_field(Field *field, object value, Writer writer) except -1:
    if value is None:
        return write_null(field, writer)
    if field.is_array:
        return write_array(field, value, writer)
    if field.kind != STRUCT:
        return write_scalar(field, value, writer)
    if field.is_nullable:
        writer.byte(1)
    return write_struct(<Plan>field.struct, value, writer)


cdef int write_null(Field *field, Writer writer) except -1:
    if not field.is_nullable:
        raise EncodeError("null where null is not allowed")
    if field.kind == STRUCT and not field.is_array:
        return writer.byte(0 if field.tag >= 0 else 0xFF)
    if field.is_compact:
        return writer.byte(0)
    return writer.big_endian(<uint64_t>-1, 2 if field.kind == STRING and not field.is_array else 4)


cdef int write_array(Field *field, object values, Writer writer) except -1:
    cdef Py_ssize_t index = 0
    cdef Py_ssize_t count
    cdef bint is_list = isinstance(values, list)
    if not is_list and not isinstance(values, tuple):
        raise EncodeError(f"needs a list, not {type(values).__name__}")
    count = PyList_GET_SIZE(values) if is_list else PyTuple_GET_SIZE(values)
    writer.length(field.is_compact, count, 4)
    try:
        while index < count:
            if is_list and index >= PyList_GET_SIZE(values):
                raise EncodeError("the list shrank while it was written")
            value = <object>(PyList_GET_ITEM(values, index) if is_list else PyTuple_GET_ITEM(values, index))
            if value is None:
                raise EncodeError("null where null is not allowed")
            if field.kind == STRUCT:
                write_struct(<Plan>field.struct, value, writer)
            else:
                write_scalar(field, value, writer)
            index += 1
    except EncodeError as error:
        error.enter(f"[{index}]")
        raise
    return 0


cdef int write_scalar(Field *field, object value, Writer writer) except -1:
    cdef int kind = field.kind
    if kind == INT32:
        return write_int(value, writer, 4, -0x80000000, MAX_INT32, "int32")
    if kind == INT64:
        return write_int(value, writer, 8, INT64_MIN, INT64_MAX, "int64")
    if kind == INT16:
        return write_int(value, writer, 2, -0x8000, 0x7FFF, "int16")
    if kind == INT8:
        return write_int(value, writer, 1, -0x80, 0x7F, "int8")
    if kind == STRING:
        return write_string(field, value, writer)
    if kind == BOOL:
        return writer.byte(1 if value else 0)
    if kind == UUID:
        if not PyBytes_Check(value) or PyBytes_GET_SIZE(value) != 16:
            raise EncodeError("needs 16 bytes")
        return writer.copy(PyBytes_AS_STRING(value), 16)
    if kind == UINT16:
        return write_int(value, writer, 2, 0, 0xFFFF, "uint16")
    if kind == UINT32:
        return write_int(value, writer, 4, 0, 0xFFFFFFFF, "uint32")
    if kind == FLOAT64:
        return write_float(value, writer)
    return write_blob(field, value, writer)


cdef int write_int(object value, Writer writer, int size, int64_t low, int64_t high, str kind) except -1:
    cdef int overflow = 0
    cdef int64_t number
    if not PyLong_Check(value):
        raise EncodeError(f"needs an int, not {type(value).__name__}")
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow or number < low or number > high:
        raise EncodeError(f"{value!r} does not fit {kind}")
    return writer.big_endian(<uint64_t>number, size)


cdef int write_float(object value, Writer writer) except -1:
    cdef double number
    cdef uint64_t bits
    try:
        number = PyFloat_AsDouble(value)
    except (TypeError, OverflowError):
        raise EncodeError(f"{value!r} does not fit float64") from None
    memcpy(&bits, &number, 8)
    return writer.big_endian(bits, 8)


cdef int write_string(Field *field, object value, Writer writer) except -1:
    cdef Py_ssize_t size = 0
    cdef const char *text
    if not PyUnicode_Check(value):
        raise EncodeError(f"needs a str, not {type(value).__name__}")
    try:
        text = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:
        raise EncodeError("has half a surrogate pair") from None
    if size > MAX_STRING:
        raise EncodeError(f"a string of {size} bytes is too long")
    writer.length(field.is_compact, size, 2)
    return writer.copy(text, size)


cdef int write_blob(Field *field, object value, Writer writer) except -1:
    cdef Py_buffer held
    cdef Py_ssize_t size
    if field.kind == RECORDS and writer.keeps_records_apart:
        size = len(value)
        writer.length(field.is_compact, size, 4)
        if size == 0:
            return 0
        if size > MAX_INLINE_RECORDS or not PyBytes_CheckExact(value):
            return writer.split(value, size)
        return writer.copy(PyBytes_AS_STRING(value), size)
    try:
        PyObject_GetBuffer(value, &held, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        raise EncodeError(f"needs bytes, not {type(value).__name__}") from None
    try:
        writer.length(field.is_compact, held.len, 4)
        return writer.copy(held.buf, held.len)
    finally:
        PyBuffer_Release(&held)
