"""The fields of JSON values, from a sample: values in, fields out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from odradek.spark.pipeline.definition.model import METADATA_COLUMNS
from odradek.spark.pipeline.definition.types import Field, WrongType, fields_of, quoted

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_LARGEST = 2**63 - 1

# A type while it is inferred: a name, ("array", type), ("struct", {name: type}); None is null so far.
_Shape = Any


def infer_fields(values: Iterable[bytes | None]) -> tuple[Field, ...]:
    """The fields that hold all values which are JSON objects; WrongType if there is none."""
    shape: _Shape = None
    objects = 0
    for value in values:
        parsed = _object(value)
        if parsed is not None:
            objects += 1
            shape = _wider(shape, _shape(parsed))
    if not objects:
        raise WrongType("no value of the sample is a JSON object, from which a schema could be inferred")
    fields = tuple(Field(name, _text(inner)) for name, inner in shape[1].items())
    if not fields:
        raise WrongType("the JSON objects of the sample are empty")
    _check(fields)
    return fields


def _check(fields: tuple[Field, ...]) -> None:
    """WrongType for fields that a pipeline file cannot have."""
    seen: dict[str, str] = {}
    for field in fields:
        before = seen.setdefault(field.name.lower(), field.name)
        if before != field.name:
            raise WrongType(
                f"the fields {before} and {field.name} differ in case only, and Spark takes them for one: "
                "write the schema with one of them"
            )
        if field.name in METADATA_COLUMNS:
            raise WrongType(
                f"the field {field.name} has the name of a column of every record: "
                "write the schema without it"
            )
    try:
        fields_of({field.name: field.type for field in fields})
    except WrongType as error:
        raise WrongType(f"{error}: write the schema without such a field") from None


def _object(value: bytes | None) -> dict[str, Any] | None:
    if value is None:
        return None
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _shape(value: Any) -> _Shape:
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "bigint" if -_LARGEST <= value <= _LARGEST else "decimal(38,0)"
    if isinstance(value, float):
        return "double"
    if isinstance(value, str):
        return "timestamp" if _TIMESTAMP.match(value) else "date" if _DATE.match(value) else "string"
    if isinstance(value, list):
        element: _Shape = None
        for one in value:
            element = _wider(element, _shape(one))
        return ("array", element)
    return ("struct", {name: _shape(one) for name, one in value.items()})


def _wider(one: _Shape, other: _Shape) -> _Shape:
    """The narrowest type that holds both."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and one[0] == other[0]:
        if one[0] == "array":
            return ("array", _wider(one[1], other[1]))
        names = [*one[1], *(name for name in other[1] if name not in one[1])]
        return ("struct", {name: _wider(one[1].get(name), other[1].get(name)) for name in names})
    numbers = {"bigint": 0, "decimal(38,0)": 1, "double": 2}
    if isinstance(one, str) and isinstance(other, str) and one in numbers and other in numbers:
        return one if numbers[one] > numbers[other] else other
    return "string"


def _text(shape: _Shape) -> str:
    if shape is None:
        return "string"
    if isinstance(shape, str):
        return shape
    if shape[0] == "array":
        return f"array<{_text(shape[1])}>"
    if not shape[1]:
        return "map<string,string>"
    inner = ", ".join(f"{quoted(name)}: {_text(one)}" for name, one in shape[1].items())
    return f"struct<{inner}>"
