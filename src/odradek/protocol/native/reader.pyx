"""Bytes to messages, compiled: the fast twin of the reading half of walker.py, same errors at the same byte."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.float cimport PyFloat_FromDouble
from cpython.list cimport PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from odradek.protocol.native.plan cimport (
    BOOL, BYTES, FLOAT64, FRESH_LIST, FRESH_STRUCT, INT8, INT16, INT32, INT64, MAX_STRING, RECORDS, STRING, STRUCT,
    UINT16, UINT32, UUID, Field, Plan,
)

from odradek.protocol.errors import DecodeError


cdef extern from *:
    """
    /* A decoded message is a tree, so that reference counts alone free it. Hidden from the cyclic collector it
       costs no collections: a big Metadata response would otherwise trigger several while it is built. */
    static PyObject *odradek_hide(PyObject *container) {
        if (container != NULL) PyObject_GC_UnTrack(container);
        return container;
    }
    static PyObject *odradek_allocate(PyObject *type) {
        return odradek_hide(((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0));
    }
    static PyObject *odradek_new_list(Py_ssize_t size) {
        return odradek_hide(PyList_New(size));
    }
    """
    object odradek_allocate(object type)
    object odradek_new_list(Py_ssize_t size)


cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    object PyLong_FromLongLong(long long value)


cdef struct Reader:
    const uint8_t *bytes
    Py_ssize_t position
    Py_ssize_t end
    Py_ssize_t elements_left
    Py_ssize_t unknown_tags_left
    PyObject *view  # a memoryview of the buffer, made when the first records field needs it
    PyObject *buffer


def decode(Plan plan not None, buffer, Py_ssize_t start, limits):
    """The message that begins at `start`, and the position after it."""
    cdef Py_buffer held
    cdef Reader reader
    PyObject_GetBuffer(buffer, &held, PyBUF_SIMPLE)
    try:
        if not 0 <= start <= held.len:
            raise DecodeError(f"there is no such byte in a buffer of {held.len}", start)
        reader.bytes = <const uint8_t *>held.buf
        reader.position = start
        reader.end = held.len
        reader.elements_left, reader.unknown_tags_left = limits
        reader.view = NULL
        reader.buffer = <PyObject *>buffer
        try:
            message = read_struct(plan, &reader)
        finally:
            Py_XDECREF(reader.view)
    finally:
        PyBuffer_Release(&held)
    return message, reader.position


def new_struct(Plan plan not None):
    """A message or nested struct with the schema's defaults in every field."""
    return default_struct(plan)


cdef inline Py_ssize_t take(Reader *reader, Py_ssize_t size) except -1:
    cdef Py_ssize_t position = reader.position
    if size > reader.end - position:
        raise DecodeError(f"needs {size} bytes, {reader.end - position} left", position)
    reader.position = position + size
    return position


cdef inline int64_t read_big_endian(const uint8_t *at, int size) noexcept:
    cdef uint64_t value = 0
    cdef int index
    for index in range(size):
        value = value << 8 | at[index]
    return <int64_t>value


cdef int64_t read_uvarint(Reader *reader) except -1:
    cdef Py_ssize_t start = reader.position
    cdef uint64_t value = 0
    cdef uint8_t byte
    cdef int shift
    if start < reader.end and reader.bytes[start] < 0x80:
        reader.position = start + 1
        return reader.bytes[start]
    for shift in range(0, 35, 7):
        byte = reader.bytes[take(reader, 1)]
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value
    raise DecodeError("a varint of more than 32 bits", start)


cdef inline void set_slot(object message, Py_ssize_t slot, object value) noexcept:
    # The message is fresh from the allocator, except that a tagged field replaces its default.
    cdef PyObject **place = <PyObject **>(<char *><PyObject *>message + slot)
    cdef PyObject *before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject *>value
    Py_XDECREF(before)


cdef object fresh_default(Field *field):
    if field.fresh == FRESH_LIST:
        return odradek_new_list(0)
    if field.fresh == FRESH_STRUCT:
        return default_struct(<Plan>field.struct)
    return <object>field.default


cdef object default_struct(Plan plan):
    cdef Py_ssize_t index
    message = odradek_allocate(plan.cls)
    for index in range(plan.end):
        set_slot(message, plan.fields[index].slot, fresh_default(&plan.fields[index]))
    return message


cdef object read_struct(Plan plan, Reader *reader):
    cdef Py_ssize_t index = 0
    cdef Field *field
    message = odradek_allocate(plan.cls)
    try:
        while index < plan.tagged_start:
            field = &plan.fields[index]
            set_slot(message, field.slot, read_field(field, reader))
            index += 1
    except DecodeError as error:
        error.enter(<object>plan.fields[index].name)
        raise
    while index < plan.end:
        field = &plan.fields[index]
        set_slot(message, field.slot, fresh_default(field))
        index += 1
    if plan.is_flexible:
        if reader.position < reader.end and reader.bytes[reader.position] == 0:
            reader.position += 1
        else:
            read_tagged_fields(plan, message, reader)
    return message


cdef int read_tagged_fields(Plan plan, object message, Reader *reader) except -1:
    cdef int64_t left = read_uvarint(reader)
    cdef int64_t previous = -1
    cdef int64_t tag, size
    cdef Py_ssize_t at, start
    cdef Field *field
    while left > 0:
        left -= 1
        at = reader.position
        tag = read_uvarint(reader)
        size = read_uvarint(reader)
        if tag <= previous:
            raise DecodeError(f"tag {tag} comes after tag {previous}", at)
        previous = tag
        start = take(reader, size)
        field = find_tagged(plan, tag)
        if field == NULL:
            reader.unknown_tags_left -= 1
            if reader.unknown_tags_left < 0:
                raise DecodeError("too many unknown tagged fields", at)
            continue
        reader.position = start
        try:
            set_slot(message, field.slot, read_field(field, reader))
            if reader.position != start + size:
                raise DecodeError(f"takes {reader.position - start} bytes, said {size}", start)
        except DecodeError as error:
            error.enter(<object>field.name)
            raise
    return 0


cdef Field *find_tagged(Plan plan, int64_t tag) noexcept:
    cdef Py_ssize_t index
    for index in range(plan.tagged_start, plan.absent_start):
        if plan.fields[index].tag == tag:
            return &plan.fields[index]
    return NULL


cdef object read_field(Field *field, Reader *reader):
    cdef int64_t present
    if field.is_array:
        return read_array(field, reader)
    if field.kind != STRUCT:
        return read_scalar(field, reader, field.is_nullable)
    if field.is_nullable:
        if field.tag >= 0:
            present = read_uvarint(reader)
        else:
            present = 1 + <int8_t>reader.bytes[take(reader, 1)]
        if present <= 0:
            return None
    return read_struct(<Plan>field.struct, reader)


cdef object read_array(Field *field, Reader *reader):
    cdef Py_ssize_t at = reader.position
    cdef int64_t count = read_length(reader, field.is_compact, 4)
    cdef Py_ssize_t index = 0
    if count < 0:
        if not field.is_nullable:
            raise DecodeError("null where null is not allowed", at)
        return None
    if count > (reader.end - reader.position) // field.element_size:
        raise DecodeError(f"{count} elements cannot fit into {reader.end - reader.position} bytes", at)
    reader.elements_left -= count
    if reader.elements_left < 0:
        raise DecodeError("too many array elements in one message", at)
    values = odradek_new_list(count)
    try:
        while index < count:
            if field.kind == STRUCT:
                value = read_struct(<Plan>field.struct, reader)
            else:
                value = read_scalar(field, reader, False)
            Py_INCREF(value)
            PyList_SET_ITEM(values, index, value)
            index += 1
    except DecodeError as error:
        error.enter(f"[{index}]")
        raise
    return values


cdef inline int64_t read_length(Reader *reader, bint is_compact, int width) except -2:
    # A length or count; -1 for null.
    cdef Py_ssize_t at
    cdef int64_t value
    if is_compact:
        return read_uvarint(reader) - 1
    at = take(reader, width)
    if width == 2:
        value = <int16_t>read_big_endian(reader.bytes + at, 2)
    else:
        value = <int32_t>read_big_endian(reader.bytes + at, 4)
    if value < -1:
        raise DecodeError(f"a length of {value}", at)
    return value


cdef object read_scalar(Field *field, Reader *reader, bint is_nullable):
    cdef int kind = field.kind
    cdef const uint8_t *bytes = reader.bytes
    cdef uint64_t bits
    cdef double number
    if kind == INT32:
        return <int32_t>read_big_endian(bytes + take(reader, 4), 4)
    if kind == INT64:
        return PyLong_FromLongLong(read_big_endian(bytes + take(reader, 8), 8))
    if kind == INT16:
        return <int16_t>read_big_endian(bytes + take(reader, 2), 2)
    if kind == INT8:
        return <int8_t>bytes[take(reader, 1)]
    if kind == BOOL:
        return True if bytes[take(reader, 1)] else False
    if kind == UUID:
        return PyBytes_FromStringAndSize(<const char *>bytes + take(reader, 16), 16)
    if kind == UINT16:
        return read_big_endian(bytes + take(reader, 2), 2)
    if kind == UINT32:
        return read_big_endian(bytes + take(reader, 4), 4)
    if kind == FLOAT64:
        bits = read_big_endian(bytes + take(reader, 8), 8)
        memcpy(&number, &bits, 8)
        return PyFloat_FromDouble(number)
    return read_sized(kind, field.is_compact, is_nullable, reader)


cdef object read_sized(int kind, bint is_compact, bint is_nullable, Reader *reader):
    cdef Py_ssize_t at = reader.position
    cdef int64_t size = read_length(reader, is_compact, 2 if kind == STRING else 4)
    cdef Py_ssize_t start
    if size < 0:
        if not is_nullable:
            raise DecodeError("null where null is not allowed", at)
        return None
    if kind == STRING and size > MAX_STRING:
        raise DecodeError(f"a string of {size} bytes", at)
    start = take(reader, size)
    if kind == BYTES:
        return PyBytes_FromStringAndSize(<const char *>reader.bytes + start, size)
    if kind == RECORDS:
        return records_view(reader, start, size)
    try:
        return PyUnicode_DecodeUTF8(<const char *>reader.bytes + start, size, NULL)
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8", start + error.start) from None


cdef object records_view(Reader *reader, Py_ssize_t start, Py_ssize_t size):
    if reader.view == NULL:
        view = memoryview(<object>reader.buffer).cast("B")
        Py_INCREF(view)
        reader.view = <PyObject *>view
    return (<object>reader.view)[start : start + size]
