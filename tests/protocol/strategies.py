"""Hypothesis strategies for messages, made from their schemas: whatever a version can carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from odradek.protocol.schema import FieldSpec
from odradek.protocol.structs import Message, Struct

MAX_ELEMENTS = 3
Overrides = Mapping[str, SearchStrategy[Any]]
NO_OVERRIDES: Overrides = {}


def _integers(bits: int, *, is_signed: bool = True) -> SearchStrategy[int]:
    low = -(1 << (bits - 1)) if is_signed else 0
    high = (1 << (bits - is_signed)) - 1
    return st.one_of(st.sampled_from([0, low, high, 1, low + is_signed]), st.integers(low, high))


# Past 126 bytes or elements a compact length takes two bytes; hypothesis alone would hardly get there.
_long_text = st.sampled_from(["t" * 126, "ü" * 64, "long " * 60])
_long_bytes = st.sampled_from([b"b" * 126, bytes(127), b"long " * 60])
_text = st.text(st.characters(codec="utf-8"), max_size=12)
_bytes = st.binary(max_size=12)
SCALARS: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": _integers(8),
    "int16": _integers(16),
    "uint16": _integers(16, is_signed=False),
    "int32": _integers(32),
    "uint32": _integers(32, is_signed=False),
    "int64": _integers(64),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.one_of(_text, _text, _long_text),
    "bytes": st.one_of(_bytes, _bytes, _long_bytes),
    "records": st.one_of(_bytes, _bytes, _long_bytes),
    "uuid": st.one_of(st.binary(min_size=16, max_size=16), st.just(bytes(16))),
}


def messages(
    cls: type[Message], version: int, overrides: Overrides = NO_OVERRIDES
) -> SearchStrategy[Message]:
    """Messages of one version, with values only in the fields that it has.

    `overrides` replaces the strategy of a scalar (or of an array's elements) by the field's path in the
    schema: `{"Topics.Partitions.ErrorCode": sampled_from(...)}`.
    """
    return structs(cls, cls.SPEC.fields, version, overrides, "")


def structs(
    cls: type[Struct], fields: tuple[FieldSpec, ...], version: int, overrides: Overrides, path: str
) -> SearchStrategy[Any]:
    """Instances of a message or nested struct; `path` leads to it and ends with a dot, or is empty."""
    values = {
        field.attribute: values_of(cls, field, version, overrides, path + field.name)
        for field in fields
        if version in field.versions
    }
    return st.builds(cls, **values)


def values_of(
    cls: type[Struct], field: FieldSpec, version: int, overrides: Overrides, path: str
) -> SearchStrategy[Any]:
    """What a field of `cls` may hold in this version."""
    if field.fields:
        one = structs(getattr(cls, field.class_name), field.fields, version, overrides, path + ".")
    else:
        one = overrides.get(path, SCALARS[field.type])
    if field.is_array:
        one = st.lists(one, max_size=MAX_ELEMENTS)
        if field.type == "int32" and path not in overrides:
            one = st.one_of(one, one, st.just(list(range(130))))
    is_nullable = version in field.nullable
    # An override of a scalar says itself whether null is among its values.
    return st.none() | one if is_nullable and (field.is_array or path not in overrides) else one
