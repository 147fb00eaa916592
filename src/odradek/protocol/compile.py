"""Compiles a schema for one version into a plan: what to read or write, in which order, in which form.

A plan holds only decisions that do not depend on the bytes, so that the walkers (walker.py, native/) have
none left to make per field.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.protocol.errors import SchemaError
from odradek.protocol.schema import FieldSpec, MessageSpec


class FieldType(IntEnum):
    """The type of one value; native/plan.pxd has the same numbers."""

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


class Fresh(IntEnum):
    """How the default of a field comes about."""

    SHARED = 0  # the immutable `default` itself
    LIST = 1  # a new empty list
    STRUCT = 2  # a new struct of defaults


FIXED_SIZES = {
    FieldType.BOOL: 1,
    FieldType.INT8: 1,
    FieldType.INT16: 2,
    FieldType.UINT16: 2,
    FieldType.INT32: 4,
    FieldType.UINT32: 4,
    FieldType.INT64: 8,
    FieldType.FLOAT64: 8,
    FieldType.UUID: 16,
}
NOT_TAGGED = -1


class FieldPlan(NamedTuple):
    """One field in one version. `element_size` is the least number of bytes of one value or element."""

    name: str
    attribute: str
    kind: FieldType
    is_array: bool
    is_nullable: bool
    is_compact: bool
    tag: int
    fresh: Fresh
    default: Any
    struct: StructPlan | None
    element_size: int


class StructPlan(NamedTuple):
    """One struct in one version: its fields in wire order, its tagged ones by tag, the ones it lacks."""

    cls: type
    is_flexible: bool
    fields: tuple[FieldPlan, ...]
    tagged: tuple[FieldPlan, ...]
    absent: tuple[FieldPlan, ...]
    drops_absent: bool
    min_size: int


def compile_plan(cls: type, spec: MessageSpec, version: int) -> StructPlan:
    """The plan of one message version for its class."""
    compiler = _Compiler(version, spec.is_flexible(version), drops_absent=spec.kind == "response")
    return compiler.struct(cls, spec.fields)


class _Compiler:
    def __init__(self, version: int, is_flexible: bool, drops_absent: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.drops_absent = drops_absent

    def struct(self, cls: type, specs: Sequence[FieldSpec]) -> StructPlan:
        fields, tagged, absent = [], [], []
        for spec in specs:
            plan = self.field(cls, spec)
            if self.version not in spec.versions:
                absent.append(plan)
            elif spec.tag is None:
                fields.append(plan)
            else:
                tagged.append(plan)
        if tagged and not self.is_flexible:
            raise SchemaError(f"{cls.__qualname__}: tagged fields in version {self.version}, not flexible")
        return StructPlan(
            cls=cls,
            is_flexible=self.is_flexible,
            fields=tuple(fields),
            tagged=tuple(sorted(tagged, key=lambda plan: plan.tag)),
            absent=tuple(absent),
            drops_absent=self.drops_absent,
            min_size=sum(map(least_size, fields)) + self.is_flexible,
        )

    def field(self, cls: type, spec: FieldSpec) -> FieldPlan:
        kind = FieldType[spec.type.upper()]
        struct = self.struct(getattr(cls, spec.class_name), spec.fields) if kind is FieldType.STRUCT else None
        is_compact = self.is_flexible and not spec.never_compact
        fresh = Fresh.SHARED
        if not spec.default_is_null and (spec.is_array or struct):
            fresh = Fresh.LIST if spec.is_array else Fresh.STRUCT
        return FieldPlan(
            name=spec.name,
            attribute=spec.attribute,
            kind=kind,
            is_array=spec.is_array,
            is_nullable=self.version in spec.nullable,
            is_compact=is_compact,
            tag=NOT_TAGGED if spec.tag is None else spec.tag,
            fresh=fresh,
            default=spec.default,
            struct=struct,
            element_size=struct.min_size if struct else scalar_size(kind, is_compact),
        )


def scalar_size(kind: FieldType, is_compact: bool) -> int:
    """The least bytes that a scalar of this kind takes."""
    if kind in FIXED_SIZES:
        return FIXED_SIZES[kind]
    if is_compact:
        return 1
    return 2 if kind is FieldType.STRING else 4


def least_size(plan: FieldPlan) -> int:
    """The least bytes that a field takes."""
    if plan.is_array:
        return 1 if plan.is_compact else 4
    if plan.struct and plan.is_nullable:
        return 1
    return plan.element_size
