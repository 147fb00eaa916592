"""Walks a plan over bytes, compiled: the fast twin of walker.py, same names, same errors.

Fields are read from and written to the objects' slots directly: a slot's place in the object is looked up once
per plan, from the descriptor that CPython keeps for it.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AsDouble, PyFloat_FromDouble
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport INT64_MAX, INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from odradek.protocol.compile import Fresh, Kind
from odradek.protocol.errors import DecodeError, EncodeError, SchemaError


cdef extern from *:
    """
    #include <structmember.h>
    /* Where the slot behind a member descriptor lies in its object; -1 for anything else. */
    static Py_ssize_t odradek_slot_offset(PyObject *descriptor) {
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    #define ODRADEK_SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
    static PyObject *odradek_allocate(PyObject *type) {
        return ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    }
    """
    Py_ssize_t odradek_slot_offset(object descriptor)
    PyObject *ODRADEK_SLOT(PyObject *message, Py_ssize_t offset)
    object odradek_allocate(object type)


cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    int PyUnicode_Check(object value)
    int PyLong_Check(object value)
    int PyBytes_Check(object value)
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1
    object PyLong_FromLongLong(long long value)


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

_numbers = {"BOOL": BOOL, "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32,
            "INT64": INT64, "FLOAT64": FLOAT64, "UUID": UUID, "STRING": STRING, "BYTES": BYTES,
            "RECORDS": RECORDS, "STRUCT": STRUCT}
assert _numbers == {kind.name: kind.value for kind in Kind}
assert (FRESH_LIST, FRESH_STRUCT) == (Fresh.LIST, Fresh.STRUCT)


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
    """A StructPlan with its fields in one C array: first the plain ones, then the tagged, then the absent."""

    cdef object cls
    cdef bint is_flexible
    cdef bint drops_absent
    cdef Py_ssize_t tagged_start
    cdef Py_ssize_t absent_start
    cdef Py_ssize_t end
    cdef Field *fields
    cdef list kept

    def __cinit__(self, plan):
        rows = (*plan.fields, *plan.tagged, *plan.absent)
        self.cls = plan.cls
        self.is_flexible = plan.is_flexible
        self.drops_absent = plan.drops_absent
        self.tagged_start = len(plan.fields)
        self.absent_start = self.tagged_start + len(plan.tagged)
        self.end = len(rows)
        self.kept = []
        self.fields = <Field *>PyMem_Malloc(max(1, self.end) * sizeof(Field))
        if self.fields == NULL:
            raise MemoryError
        for index, row in enumerate(rows):
            self._fill(&self.fields[index], row)

    cdef _fill(self, Field *field, row):
        nested = None if row.struct is None else Plan(row.struct)
        self.kept.append((nested, row.default, row.name))
        field.kind = row.kind
        field.is_array = row.is_array
        field.is_nullable = row.is_nullable
        field.is_compact = row.is_compact
        field.tag = row.tag
        field.fresh = row.fresh
        field.slot = odradek_slot_offset(self.cls.__dict__[row.attribute])
        field.element_size = max(1, row.element_size)
        field.default = <PyObject *>row.default
        field.struct = <PyObject *>nested
        field.name = <PyObject *>row.name
        if field.slot < 0:
            raise SchemaError(f"{self.cls.__qualname__}.{row.attribute} is not a slot")

    def __dealloc__(self):
        PyMem_Free(self.fields)


def prepare(plan):
    """What `decode` and `encode` take."""
    return Plan(plan)


# Reading

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
        return []
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
    values = PyList_New(count)
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


# Writing

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

    cdef uint8_t *room(self, Py_ssize_t size) except NULL:
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
        self.room(1)[0] = value
        return 0

    cdef int copy(self, const void *source, Py_ssize_t size) except -1:
        memcpy(self.room(size), source, size)
        return 0

    cdef int big_endian(self, uint64_t value, int size) except -1:
        cdef uint8_t *at = self.room(size)
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
    """A frame, size first, as parts to send: bytes, and between them each records field as it was given."""
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
        # The size goes before the value but is known after it: write the value, then make room.
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
        return writer.split(value, size) if size else 0
    try:
        PyObject_GetBuffer(value, &held, PyBUF_SIMPLE)
    except (TypeError, BufferError):
        raise EncodeError(f"needs bytes, not {type(value).__name__}") from None
    try:
        writer.length(field.is_compact, held.len, 4)
        return writer.copy(held.buf, held.len)
    finally:
        PyBuffer_Release(&held)
