"""Our messages in the words of Kafka's JSON, so that the two can be compared field by field."""

from __future__ import annotations

import base64
from typing import Any

from odradek.protocol.schema import FieldSpec
from odradek.protocol.structs import Struct

Fields = tuple[FieldSpec, ...]


def name_of(field: FieldSpec) -> str:
    """What Java calls a field."""
    return field.name[0].lower() + field.name[1:]


def content(fields: Fields, struct: Struct, version: int) -> dict[str, Any]:
    """A message as Kafka's JSON has it: tagged fields only if they differ from their default."""
    found = {}
    for field in fields:
        value = getattr(struct, field.attribute)
        if version in field.versions and not (field.tag is not None and is_default(field, value)):
            found[name_of(field)] = _value(field, value, version)
    return found


def is_default(field: FieldSpec, value: Any) -> bool:
    """Whether a field holds what the schema gives it when nobody sets it."""
    if field.default_is_null or value is None:
        return field.default_is_null and value is None
    if field.is_array:
        return bool(value == [])
    return bool(value == (type(value)() if field.fields else field.default))


def defaults(fields: Fields) -> dict[str, Any]:
    """The default of every field as Vectors.java describes it: a struct is empty braces."""
    return {
        name_of(field): {"default": _default(field)}
        | ({"fields": defaults(field.fields)} if field.fields else {})
        for field in fields
    }


def _value(field: FieldSpec, value: Any, version: int) -> Any:
    if field.is_array and value is not None:
        return [_element(field, element, version) for element in value]
    return _element(field, value, version)


def _element(field: FieldSpec, value: Any, version: int) -> Any:
    if field.fields and value is not None:
        return content(field.fields, value, version)
    return _scalar(field, value)


def _scalar(field: FieldSpec, value: Any) -> Any:
    """Ids are in Java's URL-safe base64 without padding, bytes and records in the usual one."""
    if field.type == "uuid" and value is not None:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
    if isinstance(value, bytes | memoryview):
        return base64.b64encode(value).decode()
    return value


def _default(field: FieldSpec) -> Any:
    if field.default_is_null:
        return None
    if field.is_array:
        return []
    return {} if field.fields else _scalar(field, field.default)
