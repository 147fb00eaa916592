"""A plan in a form that C walks: field rows in one array, and where each field's slot lies in its object.

The place of a slot is looked up once per plan, from the descriptor that CPython keeps for it; reader and writer
then touch the slots directly.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject

from odradek.protocol import limits
from odradek.protocol.compile import Fresh, FieldType
from odradek.protocol.errors import SchemaError


cdef extern from *:
    """
    #include <structmember.h>
    /* Where the slot behind a member descriptor lies in its object; -1 for anything else. */
    static Py_ssize_t odradek_slot_offset(PyObject *descriptor) {
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    """
    Py_ssize_t odradek_slot_offset(object descriptor)


_numbers = {"BOOL": BOOL, "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32,
            "INT64": INT64, "FLOAT64": FLOAT64, "UUID": UUID, "STRING": STRING, "BYTES": BYTES,
            "RECORDS": RECORDS, "STRUCT": STRUCT}
assert _numbers == {kind.name: kind.value for kind in FieldType}
assert MAX_INLINE_RECORDS == limits.MAX_INLINE_RECORDS
assert (FRESH_LIST, FRESH_STRUCT) == (Fresh.LIST, Fresh.STRUCT)


cdef class Plan:
    """A StructPlan with its fields in one C array: first the plain ones, then the tagged, then the absent."""

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
            self.fill(&self.fields[index], row)

    cdef int fill(self, Field *field, row) except -1:
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
        return 0

    def __dealloc__(self):
        PyMem_Free(self.fields)


def prepare(plan):
    """What `decode` and `encode` take."""
    return Plan(plan)
